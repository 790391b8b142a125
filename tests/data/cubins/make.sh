#!/usr/bin/env bash
# Makes the cubins of this folder again. They were made by nvcc 13.0.88.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for arch in 75 90 120; do nvcc -cubin -arch=sm_$arch -o parameters_sm$arch.cubin parameters.cu; done
nvcc -cubin -arch=sm_90 -o large_sm90.cubin large.cu
for scale in 2 3; do
  nvcc -cubin -rdc=true -arch=sm_90 -DSCALE=$scale.0F -o device_${scale}_sm90.cubin device.cu
done
for arch in 75 80 90 100 120; do nvcc -cubin -arch=sm_$arch -o moves_sm$arch.cubin moves.cu; done
for arch in 75 90 100; do nvcc -cubin -arch=sm_$arch -o shared_sm$arch.cubin shared.cu; done
nvcc -rdc=true -arch=sm_90 -cubin -o indirect.o indirect.cu &&
  nvlink -arch sm_90 indirect.o -o indirect_sm90.cubin
rm -f indirect.o
for factor in 2 3; do
  nvcc -cubin -arch=sm_80 -DFACTOR=$factor.0F -o same_name_${factor}_sm80.cubin same_name.cu
done
# What nvdisasm says of them: tests/unit/collector/identity/sass_test.py with --record.
