// The simgpu side of kernel.h: the same names as for nvcc, made of types that count what they do.
// Kernel authors include simgpu/kernel.h; what each operation counts as is stated in the headers
// below.
#pragma once
#include <simgpu/sim/execution.h>
#include <simgpu/sim/half.h>
#include <simgpu/sim/matrix.h>
#include <simgpu/sim/module.h>
#include <simgpu/sim/pointer.h>
#include <simgpu/sim/scalar.h>
