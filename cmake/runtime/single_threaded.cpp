// libstdc++ asks glibc whether there is only one thread, which glibc says since 2.32. Nobody says
// so here: reference counts are atomic then.
extern "C" {
extern char __libc_single_threaded __attribute__((visibility("hidden")));
char __libc_single_threaded = 0;
}
