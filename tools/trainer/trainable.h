// What the training loop trains: a model with its data, its loss and its optimizer, on one stream.
#pragma once
#include <cstdint>

#include "nvtx_range.h"

namespace trainer {

// One step is set_batch, begin_step, for each micro-batch use_micro_batch, forward, loss and
// backward, then update. All but read_loss() and read_weights_hash() only queue work on the stream.
// Calls may come from any thread whose context is current, one at a time.
class Trainable {
 public:
  virtual ~Trainable() = default;

  // Copies the step's data, for all of its micro-batches, to where every step has them.
  virtual void set_batch(int step) = 0;
  virtual int micro_batches() const { return 1; }
  virtual void begin_step() {}
  virtual void use_micro_batch(int) {}
  virtual void forward(Ranges ranges) = 0;
  virtual void loss() = 0;
  virtual void backward(Ranges ranges) = 0;
  virtual void update() = 0;

  // Waits for the stream; the mean loss of the last step.
  virtual float read_loss() const = 0;
  // Waits for the stream; XXH3 of the bytes of all weights and biases, from the first layer on.
  virtual uint64_t read_weights_hash() const = 0;
};

}  // namespace trainer
