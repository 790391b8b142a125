// One more pass over all packets, on several threads, for sums that do not depend on an order.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_file.h"

namespace flopinj::reduce {

// Each thread has sums of its own, made by none(); visit(trace, packet, sums) adds a packet to
// them, and join(to, from) adds those of a thread to the others'. Damage was said by the passes
// before.
template <typename None, typename Visit, typename Join>
auto add_up_packets(const Segments& segments, const Revisions& revisions,
                    std::vector<TraceFile>& files, unsigned jobs, None&& none, Visit&& visit,
                    Join&& join) {
  const std::vector<Segment>& all = segments.all();
  std::atomic<size_t> next{0};
  std::mutex lock;
  std::exception_ptr failure;
  auto result = none();
  const auto read = [&] {
    try {
      auto mine = none();
      for (size_t i = next++; i < all.size(); i = next++)
        for_each_new_packet(all[i], *files[all[i].file].input, [&](const Packet& packet) {
          if (!packet.damaged) visit(all[i].trace, packet, mine);
          return true;
        });
      const std::lock_guard guard(lock);
      join(result, mine);
    } catch (...) {
      const std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < std::min<size_t>(jobs, all.size()); ++i) threads.emplace_back(read);
  } catch (const std::system_error&) {  // no more threads can be made: the others do it
  }
  read();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  for (const Revisions::Place& place : revisions.newest()) {
    DamageLog logged_before;
    PacketReader reader(*files[place.file].input, logged_before, Batches::kCheck, place.begin,
                        place.end);
    Packet packet;
    if (reader.next(packet) && Revisions::open(place, packet) && !packet.damaged)
      visit(place.trace, packet, result);
  }
  return result;
}

}  // namespace flopinj::reduce
