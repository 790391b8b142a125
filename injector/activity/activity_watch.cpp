#include <injector/activity/activity_watch.h>

#include <utility>

namespace flopinj {

ActivityWatch::Advice ActivityWatch::look(uint64_t launches, uint64_t records, uint64_t now_ns) {
  launches_ = launches;
  if (std::exchange(records_, records) != records || launches == answered_launches_) {
    answered_launches_ = launches;
    silent_since_ns_ = asked_ns_ = 0;
    said_ = false;
    return Advice::kNothing;
  }
  if (silent_since_ns_ == 0) silent_since_ns_ = asked_ns_ = now_ns;
  if (now_ns - asked_ns_ >= kPatienceNs) {
    asked_ns_ = now_ns;
    return Advice::kAskAgain;
  }
  if (now_ns - silent_since_ns_ < kSilenceNs || std::exchange(said_, true)) return Advice::kNothing;
  return Advice::kSayIt;
}

}  // namespace flopinj
