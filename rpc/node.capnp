@0xd3c1f5a7b2e94061;
# What a node daemon and the coordinator say to each other. The daemon dials in; facts travel up
# through NodeSession.update, decisions travel down through Node.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("tierpilot::wire");

struct Measure {
  # A measured figure, or why there is none. Never guessed, never zero for "unknown".
  union {
    value @0 :Float64;
    unavailable @1 :Text;
  }
}

struct Quantiles {
  p50 @0 :Measure;
  p99 @1 :Measure;
}

struct Tier {
  # In order of measured speed, fastest first.
  tier @0 :Text;
  kind @1 :Text;            # dram, cxl, pmem, memory (a node without CPUs), directory
  place @2 :Text;           # "NUMA node 0" or the directory's path
  role @3 :Text;            # fast, slow: what the dataset pool uses it for; empty otherwise
  capacityBytes @4 :UInt64;
  latencyNs @5 :Quantiles;
  readGbPerS @6 :Measure;
  writeGbPerS @7 :Measure;
  evictGbPerS @8 :Measure;
  promoteGbPerS @9 :Measure;
  method @10 :Text;
}

struct Gpu {
  name @0 :Text;
  uuid @1 :Text;
  memoryBytes @2 :UInt64;
  # Of its kind; 0: its driver does not tell, or the program is older.
  computeCapability @3 :Float64;
  cores @4 :UInt32;            # CUDA's
  smClockMhz @5 :UInt32;       # the most, of this and of the memory's
  memoryClockMhz @6 :UInt32;
  busWidthBits @7 :UInt32;
}

struct Program {
  # The program at one end of a connection; see rpc/protocol.h.
  program @0 :Text;
  version @1 :Text;
  protocol @2 :UInt16;        # 0: from before there was a number
  oldestProtocol @3 :UInt16;  # that it still understands
  features @4 :List(Text);    # what it may be asked for beside that
}

struct NodeInfo {
  name @0 :Text;            # unique in the cluster
  instance @1 :UInt64;      # drawn at each start of the daemon
  hostname @2 :Text;
  version @3 :Text;
  cpus @4 :Text;            # "0-3"
  units @5 :UInt32;         # compute units: tasks' cores run on them
  memoryBytes @6 :UInt64;   # what tasks may ask for
  fastBudgetBytes @7 :UInt64;
  slowBudgetBytes @8 :UInt64;
  dataAddress @9 :Text;     # where other daemons fetch datasets: "unix:/..." or "tls:host:port"
  tiers @10 :List(Tier);
  gpus @11 :List(Gpu);
  gpusUnavailable @12 :Text;
  float32OpsPerS @13 :Measure;
  int32ToFloat @14 :Measure; # float operations that one int32 operation costs here, as measured
  features @15 :List(Feature);
  limits @16 :List(Feature);
  predecessors @17 :List(UInt64);  # instances that had its work folder on this machine since it was
                                   # booted, and of which nothing runs any more: it holds their lock
  program @18 :Program;
  sharedUnits @19 :List(SharedUnit);
  swapRoomBytes @20 :UInt64;    # of the tiers that tasks may ask for room in, see TaskSpec
  largestWriteBytes @21 :UInt64;  # of one dataset, by a task, that could be kept here if nothing else
                                  # were; 0: an older daemon
}

struct SharedUnit {
  # Of which several tasks have a part each, by number in its list.
  type @0 :Text;               # cpu, or the GPU's model
  cores @1 :Float64;           # of a GPU 0, so that older coordinators leave it alone
  memoryBytes @2 :UInt64;
  gpu @3 :Text;                # UUID; empty: it is a group of cores
}

struct Feature {
  name @0 :Text;
  on @1 :Bool;
  reason @2 :Text;
}

struct NodeStatus {
  fastFreeBytes @0 :UInt64;
  slowFreeBytes @1 :UInt64;
  runningUnits @2 :UInt32;
  evictGbPerS @3 :Measure;       # live: from the pool's own evictions
  selfCpuShare @4 :Measure;      # of one core, since the last status
  selfResidentBytes @5 :UInt64;
  bpfRunTimeShare @6 :Measure;   # of one core
  metrics @7 :List(Metric);
  takesNone @8 :Text;            # why it takes no tasks now; empty: it takes them
  unhealthy @9 :List(UnitTrouble);  # units that are to get no new work, all of them
  gpus @10 :List(GpuReading);       # those that answer
}

struct UnitTrouble {
  unit @0 :Text;     # without its node: cpu/NUMBER, gpu/UUID
  reason @1 :Text;
}

struct GpuReading {
  # What a GPU did when it was last looked at, some seconds ago.
  uuid @0 :Text;
  temperatureC @1 :Measure;
  memoryUsedBytes @2 :Measure;
  busyPercent @3 :Measure;   # of the time in which anything computed on it
}

struct Metric {
  name @0 :Text;   # with its unit: migrated_pages, direct_reclaim_p99_ns
  value @1 :Measure;
}

struct Digest {
  # XXH3-128 of a version's bytes; all zero: not known.
  high @0 :UInt64;
  low @1 :UInt64;
}

struct Replica {
  # A dataset's state on one node; neither fast nor slow: gone.
  dataset @0 :Text;
  version @1 :UInt64;
  bytes @2 :UInt64;
  inFast @3 :Bool;
  inSlow @4 :Bool;
  home @5 :Bool;       # is kept here until the coordinator says otherwise
  digest @6 :Digest;
  damaged @7 :Bool;    # a copy here was found with other bytes, and went
}

struct Attempt {
  task @0 :UInt64;
  attempt @1 :UInt32;
}

struct Rank {
  # One process of a gang: where it stands in it, and what it may compute on.
  gang @0 :UInt64;           # the task that it is a rank of
  rank @1 :UInt32;
  worldSize @2 :UInt32;
  localRank @3 :UInt32;      # among those on its node
  localWorldSize @4 :UInt32;
  nodeRank @5 :UInt32;       # its node's number among the gang's
  masterAddress @6 :Text;    # of the node with rank 0
  masterPort @7 :UInt16;     # 0 for rank 0: its node finds a free one, and says so as it accepts
  cpuUnits @8 :List(UInt32); # compute units of the node that it may have, best first: as many as
                             # Assignment.units are free of others; empty: any
  gpus @9 :List(Text);       # by UUID, all its own
  restarts @10 :UInt32;      # tries of the gang before this one
}

struct JobReport {
  # What a job last said of itself through its channel, and not kept: a later one replaces it.
  attempt @0 :Attempt;
  atMs @1 :Int64;
  iteration @2 :UInt64;
  iterations @3 :UInt64;     # of how many; 0: not said
  samples @4 :UInt64;
  loss @5 :Measure;
  measures @6 :List(Metric);
  cpuNs @7 :UInt64;          # CPU time of all its processes until then; 0: not known
  milliUnits @8 :UInt32;     # of an elastic task or a share: what it may use; see setShare
  waitedNs @9 :UInt64;       # that its threads were ready to compute and had no CPU, or stood still for
                             # their share; told of shares, in reports of which the job says nothing
  takesCheckpoints @10 :Bool; # it said that it would save its state if it was asked to
}

struct ServedData {
  # How a task's data came into the fast tier.
  localBytes @0 :UInt64;     # were in the fast tier already
  promotedBytes @1 :UInt64;
  fetchedBytes @2 :UInt64;
  evictedBytes @3 :UInt64;   # left the fast tier to make room
  evictedWrittenBytes @4 :UInt64;
  latencyNs @5 :UInt64;      # from receiving the assignment until the last byte was served
  evictGbPerS @6 :Measure;   # the eviction bandwidth that held then
  referenceNs @7 :UInt64;    # the fast tier's own service time for as many bytes, as measured
  runningUnits @8 :UInt32;   # busy units of the node when the data was there
  # Of the latency:
  queuedNs @9 :UInt64;       # until work on it began: room for all of it, and a free mover
  evictNs @10 :UInt64;       # making room
  promoteNs @11 :UInt64;     # transferring promotedBytes
  fetchNs @12 :UInt64;       # transferring fetchedBytes
}

struct Exit {
  how @0 :Text;              # exited, signalled, could_not_start, cancelled, timed_out, lease_expired, memory_limit, data_failed,
                             # lost (its warden died)
  code @1 :Int32;            # exit status or signal number
  reason @2 :Text;
  cpuUserNs @3 :UInt64;
  cpuSystemNs @4 :UInt64;
  maxResidentBytes @5 :UInt64;
  wallNs @6 :UInt64;
  ioReadBytes @7 :Measure;
  ioWriteBytes @8 :Measure;
  written @9 :List(Replica); # new versions this task made
  memoryTier @10 :Text;      # what became of the wish in Assignment.memoryTier; empty: there was none
  memory @11 :List(Metric);  # what the kernel did with the task's memory: faults, waits for reclaim
  nodeFault @12 :Bool;       # could_not_start, lost: for a reason of the node, not of the task
  agoMs @13 :UInt64;         # that it ended before this was sent; 0 where the node does not know
  noRoomBytes @14 :UInt64;   # data_failed: of a dataset that it wrote, and there was no room for; 0: another cause
}

struct NodeEvent {
  sequence @0 :UInt64;       # rises by one; the daemon keeps an event until it is acknowledged
  union {
    replica @1 :Replica;
    served :group { attempt @2 :Attempt; data @3 :ServedData; }
    started :group { attempt @4 :Attempt; pid @5 :Int32; cpuUnits @8 :List(UInt32); }
    exited :group { attempt @6 :Attempt; exit @7 :Exit; }
    # What the checkpoint of this name cost: the job, until its node had it, and of that the copy.
    checkpointed :group { attempt @9 :Attempt; checkpoint @10 :Text; stallNs @11 :UInt64; copyNs @12 :UInt64; }
    # A device failed under whatever ran on it; see daemon/topology/xid.h.
    unitFault :group { unit @13 :Text; kind @14 :Text; detail @15 :Text; }
  }
}

struct DatasetNeed {
  dataset @0 :Text;
  version @1 :UInt64;
  bytes @2 :UInt64;
  write @3 :Bool;
  sources @4 :List(Text);    # data addresses of nodes that hold it, best first
  digest @5 :Digest;
  checkpoint @6 :Bool;       # of the task's own: what it begins from
}

struct JobAdvice {
  # What the coordinator tells a running job through its channel.
  union {
    checkpointNow @0 :Text;    # why
    checkpointEvery :group { intervalMs @1 :UInt64; costMs @2 :UInt64; failuresPerHour @3 :Float64; }
    checkpointSafe :group { iteration @4 :UInt64; copies @5 :UInt32; }
  }
}

struct EnvVar {
  name @0 :Text;
  value @1 :Text;
}

struct Assignment {
  attempt @0 :Attempt;
  argv @1 :List(Text);
  env @2 :List(EnvVar);
  units @3 :UInt32;
  memoryLimitBytes @4 :UInt64;  # 0: none
  timeLimitMs @5 :Int64;        # 0: none
  datasets @6 :List(DatasetNeed);
  name @7 :Text;                # the task's; placement rules may name it
  memoryTier @8 :Text;          # as in TaskSpec
  # Of the tasks that have their data there and wait for units those run first whose places were
  # reckoned earlier, as places of different reckonings cannot be compared; of them the least place,
  # and of equal ones the first that came.
  placeS @9 :Float64;
  reckoning @10 :Int64;        # 0 from a coordinator that gives no places
  rank @11 :Rank;              # null: it is in no gang
  maxUnits @12 :UInt32;        # not 0: it is elastic, begins with `units`, and setShare() follows
  share @13 :UnitShare;        # null: it has `units` of its own
  submitter @14 :Text;         # the account, or the name of the certificate; empty: not told
  swapRoomBytes @15 :UInt64;   # of the node's tiers for swapping; 0: none

  struct UnitShare {
    unit @0 :UInt32;           # of the node's shared units
    milli @1 :UInt32;          # thousandths of it, until setShare() says otherwise
    memoryBytes @2 :UInt64;    # of a GPU, whose memory is limited to it; of one with room for
                               # swapping also of other units; 0: not limited, or not told
    mostMilli @3 :UInt32;      # that it is predicted to use at most; 0: not said
  }
}

struct DatasetSource {
  union {
    file @0 :Text;       # absolute path on the node
    zeroBytes @1 :UInt64;
    random :group { bytes @2 :UInt64; seed @3 :UInt64; }
  }
}

interface Node {
  # Offered by the daemon. Every call may be repeated.
  start @0 (assignment :Assignment) -> (masterPort :UInt16);
  # Ends the attempt wherever it is: waiting for data, queued, running. An Exit event follows.
  cancel @1 (attempt :Attempt, reason :Text) -> ();
  createDataset @2 (name :Text, source :DatasetSource) -> (replica :Replica);
  # Forgets all versions below the given one, or, unless it is 0, only the last one, if it has this content.
  dropDataset @3 (name :Text, belowVersion :UInt64, onlyVersion :UInt64, onlyDigest :Digest) -> ();
  # `dropped`: bytes from `offset` on that are there no more; `data` begins behind them.
  readLog @4 (attempt :Attempt, stream :Text, offset :UInt64, maxBytes :UInt32)
      -> (data :Data, end :Bool, dropped :UInt64);
  # The home copy of a dataset is never dropped for room.
  setHome @5 (name :Text, version :UInt64, home :Bool, digest :Digest) -> ();
  unused6 @6 () -> ();  # was a call for each attempt that NodeSession.update's answer now names
  # Every process of a running attempt stands still, or goes on. Lease and time limit count on.
  pause @7 (attempt :Attempt, paused :Bool) -> ();
  # Makes this node one of those that keep a version, from the sources or from what is here.
  keepDataset @8 (need :DatasetNeed) -> (replica :Replica);
  # Reads the copies that are here: each is absent, good or damaged. What is damaged goes.
  verifyDataset @9 (dataset :Text, version :UInt64, digest :Digest) -> (fast :Text, slow :Text);
  # An elastic attempt, or one with a share of a unit, may use so many thousandths of a compute unit from now on, within what it asked
  # for. Where other tasks have come meanwhile it gets less: the answer says how many.
  setShare @10 (attempt :Attempt, milliUnits :UInt32) -> (milliUnits :UInt32);
  tellJob @11 (attempt :Attempt, advice :JobAdvice) -> ();
}

interface NodeSession {
  # Offered by the coordinator to a registered daemon. An update without events is a heartbeat.
  # The lease counts from the moment the daemon *sent* the update whose answer carries it.
  update @0 (events :List(NodeEvent), status :NodeStatus, jobs :List(JobReport))
      -> (leaseMs :UInt32, acknowledged :UInt64, released :List(Attempt));
  # Released attempts are over for the coordinator too: their directories may go once they are old.
  # What the node is made of has changed since it registered: memory came or went, or measures anew.
  describe @1 (info :NodeInfo) -> ();
  # The daemon ends in a moment, with none of its tasks left. Older coordinators do not know the call.
  leave @2 () -> ();
}

interface DataSource {
  # Offered by a daemon to other daemons at its data address.
  read @0 (dataset :Text, version :UInt64, offset :UInt64, maxBytes :UInt32, digest :Digest)
      -> (data :Data);
  # May the caller, whose own data address is `reader`, read now? Only so many read from a node at a
  # time. Advice for speed: read() asks for no turn. Without `wait` and with none free, the answer has
  # neither. With `wait` it comes when the caller's turn does, or with `elsewhere`, the data address
  # of a node that has read this version from here in the meantime.
  turn @1 (dataset :Text, version :UInt64, reader :Text, wait :Bool, digest :Digest)
      -> (turn :ReadTurn, elsewhere :Text);
  # What came from here was not what the digest says: the copy is looked at.
  doubt @2 (dataset :Text, version :UInt64, digest :Digest) -> ();
}

interface ReadTurn {
  # Lasts until it is dropped.
  done @0 () -> ();  # all was read, and others may read it at `reader` now
}
