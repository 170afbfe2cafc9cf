// A task that uses memory and tells on which NUMA nodes it is, a JSON object per line:
//
//   vm_tier_task heap MIB SECONDS    allocates it in pieces with malloc, touches it, looks once at
//                                    once and once after a while
//   vm_tier_task hot MIB SECONDS     a quarter, which starts on the last node, takes nine tenths of
//                                    the accesses; looks every second, and ends early when nine
//                                    tenths of the quarter are on the first node
//   vm_tier_task stay MIB SECONDS    the same, to the end
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPiece = 64 << 10;
using Seconds = std::chrono::duration<double>;

double now_s() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Share of the pages that is on each node, printed; that of the first node is returned.
double look(const std::vector<char*>& pieces, size_t piece_bytes, double at_s) {
  std::vector<void*> pages;
  for (char* piece : pieces)
    for (size_t at = 0; at < piece_bytes; at += kPage) pages.push_back(piece + at);
  std::vector<int> nodes(pages.size(), -1);
  if (::move_pages(0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0) {
    std::perror("move_pages");
    std::exit(1);
  }
  std::vector<size_t> counts(static_cast<size_t>(numa_max_node()) + 1);
  for (const int node : nodes)
    if (node >= 0) ++counts[static_cast<size_t>(node)];
  std::printf("{\"s\": %.1f, \"shares\": [", at_s);
  for (size_t node = 0; node < counts.size(); ++node)
    std::printf("%s%.3f", node ? ", " : "",
                static_cast<double>(counts[node]) / static_cast<double>(pages.size()));
  std::printf("]}\n");
  std::fflush(stdout);
  return static_cast<double>(counts[0]) / static_cast<double>(pages.size());
}

void use_heap(size_t bytes, double seconds) {
  std::vector<char*> pieces;
  for (size_t at = 0; at < bytes; at += kPiece) {
    auto* piece = static_cast<char*>(std::malloc(kPiece + kPage));
    // Whole pages of the piece, which no other allocation shares.
    piece += kPage - reinterpret_cast<size_t>(piece) % kPage;
    std::memset(piece, 1, kPiece);
    pieces.push_back(piece);
  }
  look(pieces, kPiece, 0);
  if (seconds <= 0) return;
  ::usleep(static_cast<unsigned>(seconds * 1e6));
  look(pieces, kPiece, seconds);
}

void* map(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return memory;
}

void use_hot_quarter(size_t bytes, double seconds, bool stays) {
  auto* memory = static_cast<volatile char*>(map(bytes));
  ::madvise(const_cast<char*>(memory), bytes, MADV_NOHUGEPAGE);
  const unsigned long mask = 1UL << numa_max_node();
  ::set_mempolicy(MPOL_BIND, &mask, 64);
  for (size_t at = 0; at < bytes; at += kPage) memory[at] = 1;
  ::set_mempolicy(MPOL_DEFAULT, nullptr, 0);
  // An emulated CPU's TLB holds all of the memory, and the kernel sees no access to a page that is
  // in the TLB: a change of more than 33 pages' protection empties it.
  constexpr size_t kScratch = 64 * kPage;
  auto* scratch = static_cast<char*>(map(kScratch));
  const std::vector<char*> hot{const_cast<char*>(memory)};
  const size_t quarter = bytes / 4;
  const double began_s = now_s();
  double next_look_s = began_s;
  unsigned long random = 88172645463325252UL;
  for (size_t count = 0; now_s() - began_s < seconds; ++count) {
    ::mprotect(scratch, kScratch, PROT_READ | PROT_WRITE);
    for (size_t at = 0; at < kScratch; at += kPage) scratch[at] = 1;
    ::mprotect(scratch, kScratch, PROT_READ);
    for (int i = 0; i < 1 << 15; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      (void)memory[(random >> 8) % (random % 10 < 9 ? quarter : bytes)];
    }
    if (now_s() < next_look_s) continue;
    next_look_s = now_s() + 1;
    if (look(hot, quarter, now_s() - began_s) > 0.9 && !stays) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || numa_available() < 0) return 2;
  const size_t bytes = std::strtoul(argv[2], nullptr, 10) << 20;
  const double seconds = std::strtod(argv[3], nullptr);
  const std::string what = argv[1];
  if (what == "heap")
    use_heap(bytes, seconds);
  else if (what == "hot" || what == "stay")
    use_hot_quarter(bytes, seconds, what == "stay");
  else
    return 2;
  return 0;
}
