// Certificates, keys and revocation lists are read again when their files change.
#pragma once

#include "rpc/event_loop.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

// Reads them now, and logs what came of it; without TLS nothing.
void refresh(const Tls& tls);
// Looks at the files once a second, and for peers whose certificate has ended once a minute, as
// long as the identity exists.
void keep_fresh(EventLoop& loop, const Tls& tls);

}  // namespace tierpilot
