// Programs that cannot run here since their code is the machine's. One line says so at the end of a
// process that loaded nothing else.
#pragma once

namespace simgpu {

void machine_code_refused();
// A table that NVIDIA does not document: the CUDA runtime, and what is built on it, asks for some.
void private_table_refused();
void module_loaded();

// Why this process cannot run; null where it loaded a module, or asked for nothing of the kind.
const char* refusal();

}  // namespace simgpu
