// The document that a report shows: what `convoy report` embeds in the page and what `convoy serve` answers under /api/runs.
// docs/report.md describes it field by field. Lists that belong together (columns of a table) have equal lengths; a number
// that is not known is null.

export type Numbers = (number | null)[];

export interface Document {
  format: number;
  generated: string; // ISO 8601, UTC
  program: string;
  runs: Run[];
}

export type State = "running" | "finished" | "interrupted" | "failed" | "lost";

// What a list of runs needs, and what runs are compared by.
export interface Summary {
  id: string;
  name: string;
  state: State;
  reason: string; // of a run that failed; else empty
  started: string; // ISO 8601, UTC
  wall_s: number | null;
  model: string;
  data: string;
  precision: string;
  workers: number;
  servers: number;
  sync: string;
  algorithm: string;
  transport: string;
  wire: string;
  world: string;
  batch: number;
  epochs: number;
  seed: number;
  threads: number;
  parameters: number | null;
  steps: number;
  epochs_done: number;
  images_per_s: number | null;
  test_accuracy: number | null;
  test_loss: number | null;
  train_loss: number | null;
  communication_share: number | null; // of training time: exposed communication and waiting
}

export interface Run extends Summary {
  verdict: string;
  data_seen: { seen: number; missing: number; twice: number } | null; // of the last epoch
  steps_table: StepColumns;
  epochs_table: EpochColumns;
  phases: string[]; // of the ledger, in the order in which they are stacked
  ranks: Rank[];
  timeline: Timeline | null;
  staleness: Staleness | null;
  idleness: Idleness[];
  resources: Resources[];
  traffic: Traffic[];
  latencies: Latency[];
  happenings: Happening[];
  layers: Layer[];
  weights_sha256: string;
  configuration: Record<string, unknown>;
  configuration_given: string[]; // the fields that differ from their defaults
  environment: Record<string, unknown>;
}

// Neighbouring steps share a row where there are many: means, with the least and greatest loss and throughput among them.
export interface StepColumns {
  step: number[]; // the last of the row
  t_s: number[]; // since the start of the run
  loss: Numbers;
  loss_min: Numbers;
  loss_max: Numbers;
  accuracy: Numbers;
  images_per_s: Numbers;
  images_per_s_min: Numbers;
  images_per_s_max: Numbers;
}

export interface EpochColumns {
  epoch: number[];
  step: number[]; // after which it ended
  t_s: number[];
  seconds: Numbers;
  train_loss: Numbers;
  train_accuracy: Numbers;
  test_loss: Numbers;
  test_accuracy: Numbers;
}

export interface Rank {
  rank: number;
  role: "worker" | "server";
  host: string;
  wall_s: number;
  phases_s: number[]; // by phase
  waits: Wait[]; // what the phase "wait" consists of, longest first
}

export interface Wait {
  rank: number; // for whom; -1: not known
  seconds: number;
  count: number;
  layer: string; // before which; empty: none
}

// What each rank did in one step. Times in milliseconds from the step's begin on the first rank.
export interface Timeline {
  step: number;
  length_ms: number;
  spans: Span[];
}

export interface Span {
  rank: number;
  lane: string; // "compute", "communication", "optimizer"
  name: string; // "forward conv1", "all-reduce", "wait"
  start_ms: number;
  ms: number;
  bytes: number | null;
  peer: number | null;
}

export interface Staleness {
  epoch: number[];
  mean: number[];
  max: number[];
  counts: number[]; // how many gradients were 0, 1, 2, ... versions behind
}

// Share of a worker's training time in which it waited for others or for messages.
export interface Idleness {
  rank: number;
  epoch: number[];
  share: Numbers;
}

// What a process and its host used, as rates between two samples.
export interface Resources {
  rank: number; // the lowest of the process
  host: string;
  cores: number; // of the host
  t_s: number[];
  cpu: Numbers; // cores in use by the process
  host_cpu: Numbers; // by everybody on its host
  memory_bytes: Numbers;
  read_bytes_s: Numbers;
  written_bytes_s: Numbers;
  switches_s: Numbers;
  network_sent_bytes_s: Numbers; // of the host, without loopback
  network_received_bytes_s: Numbers;
  network_sent_packets_s: Numbers;
  network_received_packets_s: Numbers;
}

// What a rank's transport carried, to and from all others.
export interface Traffic {
  rank: number;
  t_s: number[];
  sent_bytes_s: Numbers;
  received_bytes_s: Numbers;
  sent_messages_s: Numbers;
  received_messages_s: Numbers;
}

// Operations between ranks, of all ranks together.
export interface Latency {
  operation: string;
  count: number;
  mean_s: number;
  least_s: number;
  most_s: number;
  bytes: number;
}

export interface Happening {
  t_s: number;
  rank: number;
  kind: string;
  text: string;
}

export interface Layer {
  name: string;
  kind: string;
  output: string;
  parameters: number;
  forward_ms: number | null;
  backward_ms: number | null;
  wait_ms: number | null; // for another rank, before it
}
