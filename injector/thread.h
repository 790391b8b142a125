// Thread states over the session's life; see edge.h for this_thread().
#pragma once

namespace flopinj {

// After a fork: states of the parent's threads are not the child's.
void forget_threads() noexcept;

}  // namespace flopinj
