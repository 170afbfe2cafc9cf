#include "coordinator/core/gangs/unit_order.h"

#include "coordinator/store/unit_records.h"

namespace tierpilot {

void order_unit(ClusterState& state, UnitOrder order, std::function<void(Status)> done) {
  state.store.write(
      [order, now_ms = state.clock.wall_ms()](Db& db) -> Status {
        if (order.drain) return records::put_unit_drain(db, order.unit, now_ms, order.reason);
        if (auto removed = records::remove_unit_failures(db, order.unit); !removed) return removed;
        return records::put_unit_drain(db, order.unit, now_ms, "");
      },
      [&state, order, done = std::move(done)](Status status) {
        if (status && order.drain) state.units.drain(order.unit, order.reason);
        if (status && !order.drain) state.units.resume(order.unit);
        done(std::move(status));
      });
}

}  // namespace tierpilot
