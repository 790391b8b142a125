// Until glibc 2.34 a program's own code ran its constructors, and gave glibc that function. Newer
// ones still call it where it is given, in the place of doing so themselves; what starts programs
// that are built there gives none. (csu/libc-start.c, and csu/elf-init.c as it was in 2.33.)
extern "C" {

using Function = void (*)(int, char**, char**);
using Main = int (*)(int, char**, char**);

extern const Function __init_array_start[] __attribute__((visibility("hidden")));
extern const Function __init_array_end[] __attribute__((visibility("hidden")));
void _init();

static void run_constructors(int count, char** arguments, char** environment) {
  _init();
  for (const Function* one = __init_array_start; one != __init_array_end; ++one)
    (*one)(count, arguments, environment);
}

int __real___libc_start_main(Main main, int count, char** arguments, Function init, void (*fini)(),
                             void (*loader_fini)(), void* stack_end);

// The linker puts it between _start and glibc (--wrap).
__attribute__((visibility("hidden"))) int __wrap___libc_start_main(Main main, int count,
                                                                   char** arguments, Function,
                                                                   void (*fini)(),
                                                                   void (*loader_fini)(),
                                                                   void* stack_end) {
  return __real___libc_start_main(main, count, arguments, run_constructors, fini, loader_fini,
                                  stack_end);
}
}
