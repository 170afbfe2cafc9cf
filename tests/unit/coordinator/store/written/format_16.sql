-- A store as programs of format 16 wrote it: their tables, and a row of each kind.
CREATE TABLE settings(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks(
  id INTEGER PRIMARY KEY, submission INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,
  node TEXT NOT NULL, attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, user TEXT NOT NULL,
  policy TEXT NOT NULL, cancel_asked INTEGER NOT NULL, spec TEXT NOT NULL, exit TEXT, served TEXT, forgiven INTEGER NOT NULL DEFAULT 0, rank TEXT, restarts INTEGER NOT NULL DEFAULT 0, share TEXT, boot_id INTEGER, clock_offset_ms INTEGER);
CREATE TABLE decisions_by_id(
  id INTEGER PRIMARY KEY, body TEXT NOT NULL, encoded BLOB);
CREATE TABLE rewards(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE datasets(
  name TEXT PRIMARY KEY, bytes INTEGER NOT NULL, version INTEGER NOT NULL, home TEXT NOT NULL,
  origin TEXT NOT NULL, request_id TEXT NOT NULL, reads INTEGER NOT NULL,
  writes INTEGER NOT NULL, digest TEXT NOT NULL DEFAULT '', replicas INTEGER NOT NULL DEFAULT 1) WITHOUT ROWID;
CREATE TABLE receipts(
  user TEXT NOT NULL, request_id TEXT NOT NULL, submission INTEGER NOT NULL,
  first_task INTEGER NOT NULL, task_count INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY(user, request_id)) WITHOUT ROWID;
CREATE TABLE nodes(
  node TEXT PRIMARY KEY, slot INTEGER NOT NULL, instance INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE owed_drops(
  node TEXT NOT NULL, dataset TEXT NOT NULL, PRIMARY KEY(node, dataset)) WITHOUT ROWID;
CREATE TABLE policy_standings(
  policy TEXT PRIMARY KEY, mode INTEGER NOT NULL, standing INTEGER NOT NULL, step INTEGER NOT NULL,
  setbacks INTEGER NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE policy_events(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, policy TEXT NOT NULL, what TEXT NOT NULL,
  why TEXT NOT NULL);
CREATE TABLE node_orders(
  node TEXT PRIMARY KEY, kind INTEGER NOT NULL, since_ms INTEGER NOT NULL,
  deadline_ms INTEGER NOT NULL, who TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE node_events(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, node TEXT NOT NULL, what TEXT NOT NULL,
  why TEXT NOT NULL);
CREATE TABLE unit_failures(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, unit TEXT NOT NULL, kind TEXT NOT NULL,
  task INTEGER NOT NULL, told TEXT NOT NULL DEFAULT '');
CREATE TABLE unit_drains(unit TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, reason TEXT NOT NULL)
  WITHOUT ROWID;
CREATE TABLE units(unit TEXT PRIMARY KEY, since_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE job_progress(task INTEGER PRIMARY KEY, points TEXT NOT NULL);
CREATE TABLE past_runs(
  engine TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(engine, name))
  WITHOUT ROWID;
CREATE INDEX tasks_active ON tasks(id) WHERE state < 4;
CREATE INDEX tasks_without_success ON tasks(state, id) WHERE state > 4;
CREATE TABLE safe_checkpoints(task INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE pair_effects(
  kind TEXT NOT NULL, first TEXT NOT NULL, second TEXT NOT NULL,
  measured_ms INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY(kind, first, second)) WITHOUT ROWID;
CREATE INDEX pair_effects_by_age ON pair_effects(kind, measured_ms);
CREATE INDEX tasks_by_job ON tasks(submission, id);
CREATE INDEX receipts_by_job ON receipts(submission);
CREATE UNIQUE INDEX unit_failures_told ON unit_failures(told) WHERE told <> '';
INSERT INTO safe_checkpoints VALUES(8,'checkpoint.8.1.20');
INSERT INTO settings VALUES('format',16);
INSERT INTO settings VALUES('lease_ms',12345);
INSERT INTO tasks VALUES(7,3,5,'exit code 4','n1',2,1700000000000,1700000001000,1700000002000,'uid 0','dqn',0,'{"after":[],"argv":["echo","a b"],"datasets":[{"dataset":"d","write":true}],"env":[["A","1"]],"float_operations":1e9,"int_operations":0.0,"memory_bytes":0,"memory_tier":"","name":"n","node":"","time_limit_ms":0,"units":2}','{"code":4,"cpu_system_ns":2,"cpu_user_ns":1,"how":"exited","io_read_bytes":5.0,"io_write_bytes":"not told","max_resident_bytes":3,"memory":[],"memory_tier":"","reason":"why","wall_ns":4,"written":[{"bytes":9,"dataset":"d","version":2}]}','{"evict_gb_per_s":1.5,"evict_ns":10,"evicted_bytes":4,"evicted_written_bytes":5,"fetch_ns":12,"fetched_bytes":3,"latency_ns":6,"local_bytes":1,"promote_ns":11,"promoted_bytes":2,"queued_ns":9,"reference_ns":7,"running_units":8}',0,NULL,0,NULL,NULL,NULL);
INSERT INTO tasks VALUES(8,4,1,'','',0,1700000003000,0,0,'uid 0','',0,'{"after":[],"argv":["echo","a b"],"datasets":[{"dataset":"d","write":true}],"env":[["A","1"]],"float_operations":1e9,"int_operations":0.0,"memory_bytes":0,"memory_tier":"","name":"n","node":"","time_limit_ms":0,"units":2}',NULL,NULL,0,NULL,0,NULL,NULL,NULL);
INSERT INTO tasks VALUES(9,5,6,'cancelled','',0,1795431986901,0,1795432017887,'uid 0','',0,'{"after":[],"argv":["echo","hello"],"datasets":[],"env":[],"float_operations":0.0,"gang":{"engine":"cpu","estimate_ms":0,"gpus_per_rank":0,"max_restarts":3,"ranks":2,"ranks_per_node_max":0,"ranks_per_node_min":0,"start_within_ms":0},"int_operations":0.0,"memory_bytes":0,"memory_tier":"","name":"gang","node":"","time_limit_ms":0,"units":1}',NULL,NULL,0,NULL,0,NULL,NULL,NULL);
INSERT INTO tasks VALUES(10,5,6,'','',0,1795431986901,0,1795432017887,'uid 0','',0,'{"after":[],"argv":["echo","hello"],"datasets":[],"env":[],"float_operations":0.0,"int_operations":0.0,"memory_bytes":0,"memory_tier":"","name":"","node":"","time_limit_ms":0,"units":1}',NULL,NULL,0,'{"cpu_units":[],"gang":9,"gpus":[],"pid":0,"rank":0}',0,NULL,NULL,NULL);
INSERT INTO tasks VALUES(11,5,6,'','',0,1795431986901,0,1795432017887,'uid 0','',0,'{"after":[],"argv":["echo","hello"],"datasets":[],"env":[],"float_operations":0.0,"int_operations":0.0,"memory_bytes":0,"memory_tier":"","name":"","node":"","time_limit_ms":0,"units":1}',NULL,NULL,0,'{"cpu_units":[],"gang":9,"gpus":[],"pid":0,"rank":1}',0,NULL,NULL,NULL);
INSERT INTO decisions_by_id VALUES(458754,'{"at_ms":9,"attempt":2,"candidates":{"assigned_units":[4],"eligible":[true],"free_fast_bytes":[1],"held_fast_bytes":[2],"held_slow_bytes":[3],"node":["n1"],"q":[0.5],"units":[5]},"data_bytes":64,"decide_ns":11,"explored":false,"fallback":"","node":"n1","operations":1e9,"policy":"dqn","reason":"best","task":7,"utilisation":0.25,"weights_version":3,"writes":true}',X'0000003f000080bf');
INSERT INTO rewards VALUES(458754,'{"evict_gb_per_s":1.5,"evicted_bytes":4,"latency_ns":6,"latency_term":0.5,"penalty_term":0.0,"reference_ns":7,"reward":0.75,"utilisation":0.25}');
INSERT INTO datasets VALUES('d',9,2,'n1','zero:9','add-1',3,1,'',1);
INSERT INTO receipts VALUES('uid 0','1a56aa16753b4709e92dc3276bcb04d4',5,9,1,'ee3da042ed2b7af640db78802de7960534ce31fd9c00402391f8df5461951519');
INSERT INTO receipts VALUES('uid 0','r1',3,7,1,'abc');
INSERT INTO receipts VALUES('uid 0','r2',4,8,1,'def');
INSERT INTO nodes VALUES('n1',5,99);
INSERT INTO units VALUES('n1/cpu/0',1700000000000);
INSERT INTO job_progress VALUES(8,'[[1,1700000003500,40,100,64,1000000,2000,0,0.5,{"accuracy":0.25}]]');
INSERT INTO past_runs VALUES('cpu','tune','{"ended_ms":1700000002000,"longest_s":12.5,"memory_bytes":1073741824,"milli":400.0,"run_s":11.0,"runs":3,"start_s":2.5}');
INSERT INTO unit_failures VALUES(1,1700000003000,'n1/cpu/0','signal 9',7,'');
INSERT INTO unit_failures VALUES(2,1700000004000,'n1/cpu/0','Xid 63',0,'n1-4');
INSERT INTO pair_effects VALUES('runs','n1','resnet',1700000004000,'{"ln":-0.25,"times":3,"weight":2.5}');
