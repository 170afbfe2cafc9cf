@0xd6f1b2a7c94e3058;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tierpilot::test");

# What the RPC tests and the RPC benchmark call.
interface Echo {
  echo @0 (text :Text) -> (text :Text);
  blob @1 (data :Data) -> (data :Data);
  make @2 (size :UInt32) -> (data :Data);
  child @3 () -> (echo :Echo);
  # Calls the listener `count` times, one after the other, then returns.
  notify @4 (listener :Listener, count :UInt32) -> (sum :UInt64);
  never @5 () -> ();
  fail @6 (code :Text, message :Text) -> ();
  peer @7 () -> (transport :Text, name :Text, uid :Int64, pid :Int64);
  deep @8 (node :Node) -> (depth :UInt32);
}

interface Listener {
  event @0 (number :UInt64) -> (number :UInt64);
}

struct Node {
  next @0 :Node;
}
