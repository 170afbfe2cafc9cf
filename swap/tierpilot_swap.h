/* libtierpilot-swap: tensors that leave a device's memory while a model trains.
 *
 * For front ends of frameworks. A front end tells it, from its hooks, which storages a forward pass
 * saves (tierpilot_swap_save) and when the backward pass asks for them (tierpilot_swap_use). The
 * library decides which of them leave, copies them into a pool of slower memory and back with its
 * own threads, and learns from one step to the next. It never allocates or frees the front end's
 * memory: it says when a copy is complete (tierpilot_swap_left) and when one should come back
 * (tierpilot_swap_ahead).
 *
 * All functions may be called from any thread. Sizes are bytes. After a fork the child's calls do
 * nothing: saves are kept, and what is away cannot be had (TIERPILOT_SWAP_LOST). Nothing is thrown
 * through this interface. Memory of the pool is anonymous or of unlinked files: it ends with the
 * process, however that ends.
 */
#ifndef TIERPILOT_SWAP_H
#define TIERPILOT_SWAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERPILOT_SWAP_VERSION 1

typedef struct tierpilot_swap tierpilot_swap;

typedef struct tierpilot_swap_settings {
  uint32_t size;     /* sizeof(tierpilot_swap_settings), for later versions */
  uint32_t reserved; /* 0 */
  /* Of the process's private resident memory, or of `device`. 0: TIERPILOT_SWAP_BUDGET, which
   * workers that torchrun starts divide among them, as they divide the tiers where they are not
   * said; of GPUs those that share one. */
  int64_t budget_bytes;
  /* Where bytes go, "node1=2GiB,dir:/srv/slow=16GiB": NUMA nodes, "memory" (any node) and
   * directories, with what may be used of each. NULL: TIERPILOT_SWAP_TIERS, or without that other
   * NUMA nodes of this machine and then TIERPILOT_SWAP_DIR or /var/tmp, half of what is free there.
   * The order is by measured bandwidth. */
  const char* tiers;
  /* "swap" (NULL is the same), "swap-all", "vdnn", "capuchin", "q-published", "checkpoint",
   * "none". */
  const char* policy;
  uint32_t out_threads, in_threads; /* 0: as many as are useful */
  /* A file with what an earlier run has learned, and where this one's is kept; NULL: none. One that
   * is damaged or was learned under other settings is not used ("plans_refused" in the statistics)
   * and replaced. A relative path is of the folder in which the program is at its opening. A link
   * is followed; what is no plain file is never replaced. */
  const char* plan_file;
  /* What the program trains on: "cpu" (NULL is the same) or "cuda:0", as the CUDA driver counts.
   * Of a GPU the budget is what the front end says that it holds (tierpilot_swap_memory). */
  const char* device;
} tierpilot_swap_settings;

/* What the front end says of a storage. */
typedef struct tierpilot_swap_storage {
  uint64_t place;   /* stable from step to step and run to run: operator, layer, shape */
  uint32_t kind;    /* tensors of one layer type and operator have the same */
  uint32_t flags;   /* of TIERPILOT_SWAP_CONVOLUTION_INPUT, _STATE, _UNFINISHED */
  const void* data; /* stays valid and unchanged until the id is named by tierpilot_swap_left,
                       dropped, or asked for */
  int64_t bytes;
  uint64_t stream; /* of a GPU: the CUstream in which the data are made; else 0 */
} tierpilot_swap_storage;

enum {
  TIERPILOT_SWAP_CONVOLUTION_INPUT = 1,
  /* No forward pass's: the program keeps it from one step to the next, as an optimiser its states.
   * It may be away until it is asked for, once; then it is dropped, and saved anew. */
  TIERPILOT_SWAP_STATE = 2,
  /* The operator that saves it may still write it, until tierpilot_swap_finished: it leaves no
   * sooner. */
  TIERPILOT_SWAP_UNFINISHED = 4,
};

typedef uint32_t tierpilot_swap_id; /* 0: none */

/* NULL: what is wrong stands in `error`. Measures the tiers, which takes some 0.2 s. In a program
 * that computes on cores, those that were given the same tiers have them together. */
tierpilot_swap* tierpilot_swap_open(const tierpilot_swap_settings* settings, char* error,
                                    size_t error_bytes);
/* Writes the plan file, where there is one: 0; -1: what is wrong stands in `error`. */
int tierpilot_swap_keep(tierpilot_swap* swap, char* error, size_t error_bytes);
/* Ends the threads and frees the pool, and does not write the plan file. Ids are void; no other
 * call may be running. */
void tierpilot_swap_close(tierpilot_swap* swap);

/* A new training step begins, if it is not noticed anyway: a save after all that was saved before
 * has been asked for or dropped. */
void tierpilot_swap_begin(tierpilot_swap* swap);

/* A forward pass saves a storage. The id stands for it until it is dropped; 0: not taken. */
tierpilot_swap_id tierpilot_swap_save(tierpilot_swap* swap, const tierpilot_swap_storage* storage);

/* The operators for which this thread has saved anything so far have returned. */
void tierpilot_swap_finished(tierpilot_swap* swap);

/* Where to read which calls have something to do, which costs less than to make them: bits of
 * TIERPILOT_SWAP_NEWS_, to be read atomically. Valid until the end; NULL after a fork. */
const uint32_t* tierpilot_swap_news(tierpilot_swap* swap);
enum {
  TIERPILOT_SWAP_NEWS_LEFT = 1,   /* tierpilot_swap_left, after a save or use */
  TIERPILOT_SWAP_NEWS_AHEAD = 2,  /* tierpilot_swap_ahead, after a use */
  TIERPILOT_SWAP_NEWS_MEMORY = 4, /* tierpilot_swap_memory, before a save, use, begin or room */
  /* Not of a call: what has TIERPILOT_SWAP_STATE leaves. Without it there is no need to save that.
   */
  TIERPILOT_SWAP_NEWS_STATES = 8,
};

/* Of a GPU: what the program holds of its memory, as its allocator counts it, and the most since
 * this was called last. */
void tierpilot_swap_memory(tierpilot_swap* swap, int64_t held_bytes, int64_t peak_bytes);

/* Ids whose memory the front end has to let go of now, up to `most`; their number. Waits while the
 * device is over its budget and copies are under way that will change it. Call it after each save
 * and use, where there are news of it, until it gives 0. */
size_t tierpilot_swap_left(tierpilot_swap* swap, tierpilot_swap_id* ids, size_t most);

enum tierpilot_swap_where {
  TIERPILOT_SWAP_HERE = 0,   /* the front end has it, and it stays */
  TIERPILOT_SWAP_AWAY = 1,   /* give it memory with tierpilot_swap_fetch, then wait */
  TIERPILOT_SWAP_COMING = 2, /* wait for it */
  TIERPILOT_SWAP_LOST = 3,   /* its tier failed, or this is a forked child */
};
/* A backward pass asks for a storage. */
enum tierpilot_swap_where tierpilot_swap_use(tierpilot_swap* swap, tierpilot_swap_id id);
/* Ids that should begin to come back now, for each of which tierpilot_swap_fetch has to be called
 * at once; their number. */
size_t tierpilot_swap_ahead(tierpilot_swap* swap, tierpilot_swap_id* ids, size_t most);
/* Begins to bring a storage back into `data`, which has its bytes and stays valid until the id is
 * released or dropped. `stream`: of a GPU, the CUstream that may still use that memory for what was
 * in it before; else 0. */
void tierpilot_swap_fetch(tierpilot_swap* swap, tierpilot_swap_id id, void* data, uint64_t stream);
/* Until it is back; TIERPILOT_SWAP_HERE or TIERPILOT_SWAP_LOST. */
enum tierpilot_swap_where tierpilot_swap_wait(tierpilot_swap* swap, tierpilot_swap_id id);
/* The front end lets go of the memory of a storage that came back; the pool's copy stays. */
void tierpilot_swap_release(tierpilot_swap* swap, tierpilot_swap_id id);
/* The program goes on holding the storage: that it leaves frees nothing. */
void tierpilot_swap_held(tierpilot_swap* swap, tierpilot_swap_id id);
/* For what is saved as TIERPILOT_SWAP_STATE: whether the device has room for so many bytes more, 1.
 * With `wait` it waits while copies are under way that may bring it. 0: let go of what
 * tierpilot_swap_left names; if that was something, ask again. */
int tierpilot_swap_room(tierpilot_swap* swap, int64_t bytes, int wait);
/* No more use. 1: a copy is under way; keep the memory until tierpilot_swap_left names the id. */
int tierpilot_swap_drop(tierpilot_swap* swap, tierpilot_swap_id id);

/* A segment of a forward pass begins: a part that the front end could compute again in the backward
 * pass from its inputs, of `input_bytes`. `place` is the same in every step. 1: do so, and save its
 * inputs now instead of what the segment saves. Segments within segments are not told. */
int tierpilot_swap_segment_begin(tierpilot_swap* swap, uint64_t place, int64_t input_bytes);
/* It has ended; `possible` is 0 where computing it again would not give the same. */
void tierpilot_swap_segment_end(tierpilot_swap* swap, int possible);

/* The device had no room: more leaves from now on. */
void tierpilot_swap_failed(tierpilot_swap* swap);

/* JSON of `what`: "statistics", "tiers", "step" (the last whole step, tensor by tensor). Up to
 * `bytes` - 1 characters and a 0 are written; what it would take without the 0 is returned. */
size_t tierpilot_swap_describe(tierpilot_swap* swap, const char* what, char* text, size_t bytes);

/* What the program should be told, each text once: that kept plans are not used, that a tier
 * is memory in disguise, that no plan can keep to the budget. Ask for it after opening and when a
 * backward pass begins until it gives 0: the length of the text, of which up to `bytes` - 1
 * characters and a 0 are written. */
size_t tierpilot_swap_warning(tierpilot_swap* swap, char* text, size_t bytes);

/* "1.5GiB"; -1: no size. */
int64_t tierpilot_swap_bytes(const char* text);
const char* tierpilot_swap_version(void);

#ifdef __cplusplus
}
#endif
#endif
