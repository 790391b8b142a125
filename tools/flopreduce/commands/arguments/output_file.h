// Where results are written: a file that is whole or not there, or a stream.
#pragma once
#include <functional>
#include <iosfwd>

namespace flopinj::reduce {

struct OutputArguments;

// Calls write() with the output that the arguments name. The exit code; errors were said.
//
// A regular file is written beside its place under another name and moved there when it is whole,
// so that a failure leaves what was there before. Pipes, devices and standard output are written
// directly, as is a file whose folder takes no new file. A name that ends in .gz: compressed.
int write_output(const OutputArguments& output, const std::function<void(std::ostream&)>& write);

// Fails where the output is one of the inputs, by whatever name, since to write it would destroy
// what is read; or a file that exists, without --force.
void refuse_to_overwrite(const OutputArguments& output);

}  // namespace flopinj::reduce
