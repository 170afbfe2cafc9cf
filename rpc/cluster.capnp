@0xb7e2a4490c5d1f38;
# What tierctl, daemons and other clients may ask of the coordinator.

using Cxx = import "/capnp/c++.capnp";
using Node = import "node.capnp";
$Cxx.namespace("tierpilot::wire");

struct DatasetUse {
  dataset @0 :Text;
  write @1 :Bool;
}

struct TaskSpec {
  name @0 :Text;                 # unique within its submit; others name it in `after`
  argv @1 :List(Text);
  env @2 :List(Node.EnvVar);
  datasets @3 :List(DatasetUse);
  units @4 :UInt32 = 1;
  memoryBytes @5 :UInt64;        # 0: no limit asked for
  floatOperations @6 :Float64;   # estimated single-precision float operations
  intOperations @7 :Float64;     # estimated int32 operations
  timeLimitMs @8 :Int64;         # 0: none
  after @9 :List(Text);          # names of tasks of this submit that must succeed first
  node @10 :Text;                # empty: the policy chooses
  memoryTier @11 :Text;          # where its memory is to be: "fast", "slow", "interleave:W1,W2",
                                 # "heap:W1,W2"; empty: placed by heat
  gang @12 :Gang;                # null: one process
  priority @13 :Int32;           # of two that wait, the higher goes first
  maxUnits @14 :UInt32;          # elastic: it may get up to so many while it runs; 0: only `units`
  share @15 :Share;              # null: it has units of its own
  quality @16 :TrainingGoal;      # of an elastic task; null: its loss is to fall, with weight 1
  swapRoomBytes @17 :UInt64;     # of its node's slower memory and directories, for tensors that its
                                 # program swaps out
}

struct TrainingGoal {
  # What is to get better as an elastic task trains, how much that counts, and by when.
  weight @0 :Float64 = 1;
  measure @1 :Text;              # of what it reports; empty: its loss
  rises @2 :Bool;                # the more of the measure the better
  goal @3 :Float64;              # of the measure, to be reached by the deadline
  deadlineMs @4 :Int64;          # after it was submitted; 0: none, and no goal
}

struct Share {
  # Of a shared unit, in place of units of its own.
  milli @0 :UInt32;              # thousandths of its compute, at most 1000; 0: as predicted
  class @1 :Text;                # latency-sensitive, best-effort
  promiseMs @2 :Int64;           # to be done so long after it was submitted; 0: none
  estimateMs @3 :Int64;          # of its run time on a unit of its own; 0: not said
  modelCard @4 :Text;            # JSON; empty: none
  engine @5 :Text;               # cpu, gpu; empty from older programs: cpu
  promiseOnTrial @6 :Bool;       # where the promise cannot be made at once, the task runs all the
                                 # same, and it is made once what was measured tells that it is kept
}

struct Gang {
  # A task of several processes, its ranks, that are placed, started and ended together. Each is a
  # task of its own, with the command, units and memory of the gang.
  ranks @0 :UInt32;
  engine @1 :Text;               # cpu, gpu
  gpusPerRank @2 :UInt32;        # 0 unless the engine is gpu
  ranksPerNodeMin @3 :UInt32;    # 0: any
  ranksPerNodeMax @4 :UInt32;    # 0: any
  estimateMs @5 :Int64;          # of its run time without failures; 0: not said
  maxRestarts @6 :UInt32;
  startWithinMs @7 :Int64;       # 0: two minutes
  maxRanks @8 :UInt32;           # it may begin again with up to so many; 0: only with `ranks`
}

struct UnitEntry {
  id @0 :Text;                   # NODE/cpu/NUMBER, NODE/gpu/UUID; of cores that are shared NODE/cores/NUMBER
  engine @1 :Text;
  node @2 :Text;
  state @3 :Text;                # up, drained, quarantined, unhealthy, lost
  reason @4 :Text;
  task @5 :UInt64;               # who has it; 0: nobody
  failures @6 :UInt64;
  ratePerHour @7 :Node.Measure;  # mean of its failure rate, and 90 % interval
  rateLow @8 :Node.Measure;
  rateHigh @9 :Node.Measure;
  temperatureC @10 :Node.Measure;    # of a GPU, as its node last read it, as the next and the last one
  memoryBytes @11 :Node.Measure;     # in use
  sharedBy @12 :List(UInt64);    # tasks that have parts of it
  shared @13 :Bool;              # for tasks with shares only
  busyPercent @14 :Node.Measure; # of the time in which anything computed on it
  shares @15 :List(UnitPart);    # of those in sharedBy
  cores @16 :Float64;            # of cores that are shared; of others 0
}

struct UnitPart {
  task @0 :UInt64;
  milli @1 :UInt32;              # thousandths of the unit
  memoryBytes @2 :UInt64;        # 0: not counted
}

struct UnitLook {
  # A unit that is shared, looked at for a task.
  node @0 :Text;
  unit @1 :UInt32;
  gpu @2 :Text;                  # empty: a group of cores
  freeMilli @3 :UInt32;
  freeMemoryBytes @4 :UInt64;
  tasks @5 :List(UInt64);        # that have shares of it
  refused @6 :Text;              # why the task cannot start there; empty: it can
  chosen @7 :Bool;
}

struct Decision {
  policy @0 :Text;               # who decided
  node @1 :Text;
  explored @2 :Bool;
  fallback @3 :Text;             # why the active policy did not decide; empty when it did
  reason @4 :Text;
  decideNs @5 :UInt64;
  weightsVersion @6 :UInt64;
  atMs @7 :Int64;
  candidates @8 :List(Candidate);
  observation @9 :Observation;
  reward @10 :Reward;
  encoded @11 :List(Float32);    # what the network saw
  considered @12 :UInt32;        # nodes that the policy was shown; `candidates` has the best of them
  eligible @13 :UInt32;          # of them, those that could take the task
  mode @14 :Text;                # of the policy: shadow, advise, enforce; empty: it does not learn
  arm @15 :Text;                 # who was to decide: policy, control, shadow (the policy was asked
                                 # and the heuristic decided), alone (it was not asked)
  proposed @16 :Text;            # the policy's choice, where it was asked and did not get it
  keptBackFor @17 :Text;         # the full node that the task had to wait for; empty: it had not
  keptBackMs @18 :Int64;         # from when it was first asked about
  gang @19 :Gang;                # null: of no gang, or decided by an older coordinator
  units @20 :List(UnitLook);     # of a task with a share: the chosen one and some others; then
                                 # `considered` and `eligible` count units that were looked at

  struct Gang {
    # Expected hours are those until the end of the job, with failures and restarts.
    expectedH @0 :Float64;         # where it was placed
    heuristic @1 :Text;            # nodes, and ranks on each, that the heuristic would have taken
    heuristicH @2 :Float64;        # there
    standing @3 :Text;             # of the policy, and why; empty: it answers to no guard
  }

  struct Candidate {
    node @0 :Text;
    eligible @1 :Bool;
    q @2 :Node.Measure;
    freeFastBytes @3 :UInt64;
    heldFastBytes @4 :UInt64;
    heldSlowBytes @5 :UInt64;
    assignedUnits @6 :UInt32;
    units @7 :UInt32;
    ranks @8 :UInt32;              # of the gang, that went there; of those that older coordinators
                                   # have placed 0, and `eligible` are those that were chosen
  }
  struct Observation {
    utilisation @0 :Float64;
    operations @1 :Float64;
    dataBytes @2 :UInt64;
    writes @3 :Bool;
  }
  struct Reward {
    reward @0 :Node.Measure;
    utilisation @1 :Float64;
    latencyTerm @2 :Float64;
    penaltyTerm @3 :Float64;
    latencyNs @4 :UInt64;
    referenceNs @5 :UInt64;
    evictedBytes @6 :UInt64;
    evictGbPerS @7 :Node.Measure;
  }
}

struct CoreShare {
  # What an elastic task has of its node's compute units, and why.
  task @0 :UInt64;
  name @1 :Text;
  units @2 :Float64;
  cores @3 :Float64;           # the same in CPUs
  sinceMs @4 :Int64;
  allocator @5 :Text;
  reason @6 :Text;
  lossLeft @7 :Node.Measure;   # of the largest change, until its last iteration as foretold
  gain @8 :Node.Measure;       # of that, what goes in the next period by what is predicted
  gainOfOneMore @9 :Node.Measure;  # what one unit more would add to that
}

struct UnitShare {
  # What a task has of a shared unit, what was predicted of it and what it was seen to do.
  unit @0 :UInt32;             # of its node's shared units
  milli @1 :UInt32;            # 0: it waits, and has no unit
  memoryBytes @2 :UInt64;      # 0: not counted
  predictedBy @3 :Text;
  predictedMilli @4 :UInt32;   # that it would use if nothing held it back
  predictedS @5 :Node.Measure; # its run time then
  usedMilli @6 :Node.Measure;
  leftS @7 :Node.Measure;      # until it is done, as predicted now, with what it has
  promiseLeftS @8 :Node.Measure;  # at its end, if it has ended
  policy @9 :Text;
  neighbours @10 :List(UInt64);  # other tasks on the unit
  preemptions @11 :UInt32;
  gpu @12 :Text;               # UUID of the unit; empty: it is of cores
  slowDowns @13 :List(SlowDown);  # beside each of the neighbours
  promise @14 :Text;           # on trial, made, made on trial, not made; of an ended task kept, broken, void; empty: there is none
}

struct SlowDown {
  # What a task is thought to keep of its speed beside another one on its unit, beyond what its share takes.
  task @0 :UInt64;             # the other one
  name @1 :Text;
  keeps @2 :Float64;           # a part of 1
  keepsAtLeast @3 :Float64;    # in 95 of 100 cases
  neighbourKeeps @4 :Float64;
  by @5 :Text;                 # what tells it: this pair as measured, each of the two beside others, or what was measured elsewhere
}

struct Checkpoint {
  # A version of a job's state that is kept, a dataset of this name.
  name @0 :Text;
  attempt @1 :UInt32;
  iteration @2 :UInt64;
  bytes @3 :UInt64;
  nodes @4 :List(Text);        # that keep it
  nodesWanted @5 :UInt32;
  safe @6 :Bool;               # it is on as many
  stallMs @7 :Node.Measure;    # that the job waited for it
  copyMs @8 :Node.Measure;     # of that, until its node had it
}

struct Checkpointing {
  # Of all checkpoints of a job, also those that went for newer ones.
  taken @0 :UInt64;
  stallMs @1 :Node.Measure;    # mean of a checkpoint
  intervalS @2 :Node.Measure;  # that loses least (Young), as its job was told
  failuresPerHour @3 :Node.Measure;  # that it was reckoned with
}

struct Task {
  id @0 :UInt64;
  submission @1 :UInt64;
  name @2 :Text;
  state @3 :Text;       # waiting, queued, assigned, running, succeeded, failed, cancelled
  reason @4 :Text;
  node @5 :Text;
  attempt @6 :UInt32;
  submittedMs @7 :Int64;
  startedMs @8 :Int64;  # 0: not yet
  finishedMs @9 :Int64;
  user @10 :Text;
  spec @11 :TaskSpec;
  exit @12 :Node.Exit;
  served @13 :Node.ServedData;
  policy @14 :Text;
  keptBack @15 :KeptBack;  # null: it is not
  hidden @16 :Text;        # what of it only others may see; empty: nothing
  gang @17 :UInt64;        # the task that it is a rank of; 0: of none
  rank @18 :UInt32;
  pid @19 :Int32;          # 0: it has not started, or that was not told
  cpuUnits @20 :List(UInt32);  # of its node, of a rank that has started
  gpus @21 :List(Text);
  restarts @22 :UInt32;    # of a gang
  ranks @23 :List(Task);   # of a gang, without its command; only where one task is shown
  progress @24 :List(Node.JobReport);  # the series, thinned, oldest first; lists have the last only
  share @25 :CoreShare;    # null: it is not elastic, or does not run
  sharedWith @26 :List(CoreShare);  # the others of its node, where it is explained
  checkpoints @27 :List(Checkpoint);  # newest first; only where one task is shown
  checkpointing @28 :Checkpointing;   # null: it has taken none
  unitShare @29 :UnitShare; # null: it has none
  width @30 :Text;          # of a gang that may have more ranks: why it has as many as it has

  struct KeptBack {
    # It waits for a node that is full.
    node @0 :Text;
    sinceMs @1 :Int64;   # first asked about
    untilMs @2 :Int64;   # placed elsewhere at the latest
  }
}

struct Dataset {
  name @0 :Text;
  bytes @1 :UInt64;
  version @2 :UInt64;
  home @3 :Text;
  replicas @4 :List(Replica);
  origin @5 :Text;
  reads @6 :UInt64;
  writes @7 :UInt64;
  digest @8 :Text;              # XXH3-128 of the current version, hexadecimal; empty: not known yet
  replicasWanted @9 :UInt32;    # nodes that are to keep it
  struct Replica {
    node @0 :Text;
    version @1 :UInt64;
    inFast @2 :Bool;
    inSlow @3 :Bool;
    kept @4 :Bool;              # not dropped for room
  }
}

struct DatasetCheck {
  name @0 :Text;
  version @1 :UInt64;
  digest @2 :Text;
  copies @3 :List(Copy);
  struct Copy {
    node @0 :Text;
    fast @1 :Text;       # good, damaged, absent; empty: could not be looked at
    slow @2 :Text;
    error @3 :Text;      # why it could not be looked at, or not be restored
    restored @4 :Bool;
  }
}

struct NodeEntry {
  info @0 :Node.NodeInfo;
  status @1 :Node.NodeStatus;
  state @2 :Text;               # expected, up, stopped, lost
  leaseLeftMs @3 :Int64;
  assignedUnits @4 :UInt32;
  tasksRunning @5 :UInt32;
  tasksDone @6 :UInt64;
  datasets @7 :UInt32;
  reason @8 :Text;
  keptBackUnits @9 :UInt32;     # of tasks that wait for it, beside those it was given
  order @10 :Text;              # an operator's: open, cordoned, draining, drained
  drainedByMs @11 :Int64;       # of a drain: what has not ended by then is handed back
  assignedSwapBytes @12 :UInt64;  # of the node's room for swapping
}

struct NodeNote {
  atMs @0 :Int64;
  what @1 :Text;
  why @2 :Text;
}

struct PolicyEntry {
  name @0 :Text;
  description @1 :Text;
  active @2 :Bool;
  learns @3 :Bool;
  decisions @4 :UInt64;
  fallbacks @5 :UInt64;
  rewardMean @6 :Node.Measure;
  decisionUs @7 :Node.Quantiles;
  mode @8 :Text;                 # shadow, advise, enforce; empty: it does not learn
  standing @9 :Text;             # trusted, deposed, probation; empty: it does not learn
  why @10 :Text;                 # of the last change of standing
  share @11 :Float64;            # of decisions that are its own while it is active
  keptBack @12 :UInt64;          # tasks that had to wait for a full node and were placed since
  keptBackReached @13 :UInt64;   # of them, placed there
  keptBackMs @14 :Node.Quantiles;
  decides @15 :Text;             # where tasks run, units of gangs
}

struct Interval {
  # The mean of what was measured, and where it is with 95 % (99 % where the guard judges) at every
  # look.
  count @0 :UInt64;
  mean @1 :Node.Measure;
  low @2 :Node.Measure;
  high @3 :Node.Measure;
}

struct PolicyChoice {
  # Of a kind of decision that is no task's node; the coordinator's configuration chooses, and of
  # those that decide units of gangs also policyUse.
  decides @0 :Text;              # units of gangs, cores of jobs, shares of units
  name @1 :Text;
  description @2 :Text;
  active @3 :Bool;
  mode @4 :Text;                 # shadow, advise, enforce; empty: it answers to no guard
  standing @5 :Text;             # trusted, deposed, probation; likewise
}

struct PolicyComparison {
  measure @0 :Text;              # reward, response (relative to the usual; smaller is better); of
                                 # policies that decide units of gangs: goodput
  first @1 :Text;
  second @2 :Text;
  ofFirst @3 :Interval;
  ofSecond @4 :Interval;
  differenceLow @5 :Node.Measure;  # of the first less the second
  differenceHigh @6 :Node.Measure;
  verdict @7 :Text;              # of the first: better, worse, not known yet
  judged @8 :Bool;               # the guard acts on it
}

struct PolicyEvent {
  atMs @0 :Int64;
  policy @1 :Text;
  what @2 :Text;
  why @3 :Text;
}

struct WeightsVersion {
  number @0 :UInt64;
  atMs @1 :Int64;
  why @2 :Text;
  experiences @3 :UInt64;
  batches @4 :UInt64;
  weightsVersion @5 :UInt64;     # as decisions name it
  reward @6 :Interval;           # of its policy's decisions before it was kept
  response @7 :Interval;
  origin @8 :Text;               # what its learning began from
}

struct PolicyGuard {
  on @0 :Bool;
  asked @1 :UInt64;              # since the start, as all that follows
  control @2 :UInt64;            # decisions of the heuristic, to compare
  advised @3 :UInt64;            # where the heuristic's own choice is known
  differed @4 :UInt64;           # of them, where the policy wanted another node
  followed @5 :UInt64;           # of those, where it got it
  faults @6 :List(Node.Metric);  # answers that could not be used, by cause
}

struct LearnerState {
  experiences @0 :UInt64;
  replaySize @1 :UInt64;
  replayCapacity @2 :UInt64;
  trainingSteps @3 :UInt64;
  loss @4 :Node.Measure;
  weightsVersion @5 :UInt64;
  epsilon @6 :Float64;
  pending @7 :UInt64;
  settings @8 :List(Node.Metric);
  origin @9 :Text;               # what its learning began from
  note @10 :Text;                # empty, or what an operator should know of it
}

struct Health {
  version @0 :Text;
  startedMs @1 :Int64;
  degraded @2 :Text;            # empty: well; else why (store cannot be written, ...)
  nodesUp @3 :UInt32;
  queued @4 :UInt64;
  running @5 :UInt64;
  busyUnitMs @6 :UInt64;        # integral of busy units over time: utilisation = d(busy) / d(capacity)
  capacityUnitMs @7 :UInt64;
  fallbacks @8 :UInt64;
  rejectedFrames @9 :UInt64;
  nowMs @10 :Int64;
  policy @11 :Text;             # the active one
  policyMode @12 :Text;         # empty: it does not learn
  policyStanding @13 :Text;
  policyWhy @14 :Text;
  keptBack @15 :UInt64;         # of the queued: wait for a full node
  assigned @16 :UInt64;         # on their way to a node, or waiting there for a unit
}

interface Backup {
  read @0 (offset :UInt64, maxBytes :UInt32) -> (data :Data, end :Bool);
}

interface Cluster {
  # Lists take `after` and `limit` so that no answer outgrows a frame; limit 0 means 500.
  health @0 () -> (health :Health);

  registerNode @1 (info :Node.NodeInfo, node :Node.Node, replicas :List(Node.Replica),
                   live :List(Node.Attempt))
      -> (session :Node.NodeSession, leaseMs :UInt32, program :Node.Program);
  # `live`: attempts the daemon holds (waiting, running, or ended and not acknowledged).

  nodeList @2 (after :Text, limit :UInt32) -> (nodes :List(NodeEntry));
  nodeShow @3 (name :Text) -> (node :NodeEntry, notes :List(NodeNote));
  # Notes: newest first.

  datasetAdd @4 (requestId :Text, name :Text, source :Node.DatasetSource, node :Text,
      replicas :UInt32) -> (dataset :Dataset);
  # replicas: nodes that are to keep it; 0: as configured.
  datasetList @5 (after :Text, limit :UInt32) -> (datasets :List(Dataset));
  datasetShow @6 (name :Text) -> (dataset :Dataset);
  datasetRemove @7 (name :Text) -> ();

  submit @8 (requestId :Text, tasks :List(TaskSpec)) -> (submission :UInt64, tasks :List(UInt64));
  # Answered when the tasks are on disk. The same requestId again gives the same answer.
  taskList @9 (state :Text, submission :UInt64, after :UInt64, limit :UInt32) -> (tasks :List(Task));
  taskShow @10 (id :UInt64) -> (task :Task);
  taskWait @11 (ids :List(UInt64), timeoutMs :UInt32) -> (done :Bool, tasks :List(Task));
  # Answers when all are ended, or at the timeout with done = false.
  taskCancel @12 (id :UInt64) -> (task :Task);
  taskLog @13 (id :UInt64, stream :Text, offset :UInt64, maxBytes :UInt32)
      -> (data :Data, end :Bool, dropped :UInt64);
  taskExplain @14 (id :UInt64) -> (task :Task, decisions :List(Decision), units :List(UnitLook));
  # Units: where one that waits for a share could start now, and why not elsewhere.

  policyList @15 () -> (policies :List(PolicyEntry), others :List(PolicyChoice));
  policyShow @16 (name :Text) -> (policy :PolicyEntry, learner :LearnerState,
      guard :PolicyGuard, versions :List(WeightsVersion), events :List(PolicyEvent));
  # All but `policy` of one that learns. Versions: oldest first; events: newest first.
  policyUse @17 (name :Text) -> (policy :PolicyEntry);

  taskPause @18 (id :UInt64, paused :Bool) -> (task :Task);
  # Of a running task only. Answered when its node has done it.

  historyTasks @19 (fromMs :Int64, untilMs :Int64, after :UInt64, limit :UInt32)
      -> (tasks :List(Task), next :UInt64);
  # Tasks submitted within [fromMs, untilMs), by rising id from `after` on, without argv, env and
  # `after` of their spec. `next` is the `after` of the next call, also when this page is empty; 0:
  # there are no more.

  policyMode @20 (name :Text, mode :Text) -> (policy :PolicyEntry);
  # Also makes a deposed policy trusted again.
  policyRollback @21 (name :Text, version :UInt64) -> (version :WeightsVersion);
  # 0: the newest version that is not in use.
  policyCompare @22 (first :Text, second :Text)
      -> (comparisons :List(PolicyComparison), concurrent :Bool);
  # No second: with the heuristic's control decisions, taken at the same time. No first: the active
  # policy.

  backup @23 () -> (backup :Backup);
  # The whole memory of the coordinator as of one commit. For its operator only.
  nodeOrder @24 (name :Text, order :Text, withinMs :Int64) -> (node :NodeEntry);
  # open: tasks as they come. cordon: no new ones. drain: no new ones, those that have not started go
  # to other nodes at once, and those that have not ended within so long then.
  nodeRemove @25 (name :Text) -> ();
  # A node that is gone for good; refused while it is up, or anything depends on it.
  unitList @26 (after :Text, limit :UInt32) -> (units :List(UnitEntry));
  # Those of gangs and shared GPUs by rising id, then cores that are shared by node and number.
  unitShow @27 (id :Text) -> (unit :UnitEntry, notes :List(NodeNote));
  unitOrder @28 (id :Text, order :Text, reason :Text) -> (unit :UnitEntry);
  # drain: no new ranks. resume: as before, and what counted against it is forgotten.
  hello @29 (program :Node.Program) -> (program :Node.Program);
  # What a client says first. Refused where the two do not understand each other.
  datasetCheck @30 (name :Text, repair :Bool) -> (check :DatasetCheck);
  # Has every node that holds it read its copies. repair: damaged ones are made anew from good ones.
}
