// A static object that is there from the first moment of the process on, and is never destroyed:
// threads, callbacks and handlers may outlive static objects.
#pragma once

namespace flopinj {

// To be declared constinit, which is what keeps it ready before any code runs.
template <class T>
union NeverDestroyed {
  constexpr NeverDestroyed() : value{} {}
  ~NeverDestroyed() {}
  T value;
};

}  // namespace flopinj
