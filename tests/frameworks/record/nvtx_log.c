// An NVTX injection library (NVTX_INJECTION64_PATH) that writes down every call that opens, closes,
// marks or names something, in the order of the calls over all threads, one line each, to the file
// in FRAMEWORKS_NVTX_LOG. nvtx_log_note() adds lines of the recording program itself; they are in
// the same order and in no NVTX stream.
//
// Fields are parted by tabs; names have \t, \n, \r and \\ escaped:
//   push THREAD DOMAIN NAME | pop THREAD DOMAIN | start THREAD DOMAIN ID NAME | end THREAD ID
//   mark THREAD DOMAIN NAME | domain ID NAME | name THREAD NAME | note THREAD TEXT
// DOMAIN is 0 for the default one. Of operators that come by flopinj_operators() and not by NVTX:
//   operator THREAD SEQUENCE NAME | operator_end THREAD
// The hand-shake is that of nvtx3/nvtxDetail/nvtxTypes.h.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "operators.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE* out;
static uint64_t last_id;

static void text(const char* s) {
  for (; s != NULL && *s != 0; ++s) {
    switch (*s) {
      case '\t': fputs("\\t", out); break;
      case '\n': fputs("\\n", out); break;
      case '\r': fputs("\\r", out); break;
      case '\\': fputs("\\\\", out); break;
      default: fputc(*s, out);
    }
  }
}

static void wide(const wchar_t* s) {
  for (; s != NULL && *s != 0; ++s) {
    if (*s < 0x80) {
      const char c[2] = {(char)*s, 0};
      text(c);
    } else {
      fprintf(out, "\\u{%x}", (unsigned)*s);
    }
  }
}

// Where registered strings are kept: the handle points at a copy.
static void message(const nvtxEventAttributes_t* a) {
  if (a == NULL) return;
  if (a->messageType == NVTX_MESSAGE_TYPE_ASCII) text(a->message.ascii);
  if (a->messageType == NVTX_MESSAGE_TYPE_UNICODE) wide(a->message.unicode);
  if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED) text((const char*)a->message.registered);
}

// Begins a line "WORD THREAD"; the lock is held until finish().
static int begin(const char* word) {
  pthread_mutex_lock(&lock);
  if (out == NULL) {
    const char* path = getenv("FRAMEWORKS_NVTX_LOG");
    out = path != NULL ? fopen(path, "w") : NULL;
    if (out == NULL) {
      pthread_mutex_unlock(&lock);
      return 0;
    }
  }
  fprintf(out, "%s\t%ld", word, (long)syscall(SYS_gettid));
  return 1;
}
static void finish(void) {
  fputc('\n', out);
  pthread_mutex_unlock(&lock);
}
static unsigned long number(nvtxDomainHandle_t domain) { return (unsigned long)(uintptr_t)domain; }

__attribute__((visibility("default"))) void nvtx_log_note(const char* line) {
  if (!begin("note")) return;
  fputc('\t', out);
  text(line);
  finish();
}
__attribute__((visibility("default"))) void nvtx_log_flush(void) {
  pthread_mutex_lock(&lock);
  if (out != NULL) fflush(out);
  pthread_mutex_unlock(&lock);
}

// --- CORE: the default domain
static int NVTX_API push_a(const char* name) {
  if (!begin("push")) return 0;
  fputs("\t0\t", out), text(name), finish();
  return 0;
}
static int NVTX_API push_w(const wchar_t* name) {
  if (!begin("push")) return 0;
  fputs("\t0\t", out), wide(name), finish();
  return 0;
}
static int NVTX_API push_ex(const nvtxEventAttributes_t* a) {
  if (!begin("push")) return 0;
  fputs("\t0\t", out), message(a), finish();
  return 0;
}
static int NVTX_API pop(void) {
  if (!begin("pop")) return 0;
  fputs("\t0", out), finish();
  return 0;
}
static nvtxRangeId_t started(unsigned long domain) {
  const uint64_t id = ++last_id;
  fprintf(out, "\t%lu\t%llu\t", domain, (unsigned long long)id);
  return id;
}
static nvtxRangeId_t NVTX_API start_a(const char* name) {
  if (!begin("start")) return 0;
  const nvtxRangeId_t id = started(0);
  text(name), finish();
  return id;
}
static nvtxRangeId_t NVTX_API start_w(const wchar_t* name) {
  if (!begin("start")) return 0;
  const nvtxRangeId_t id = started(0);
  wide(name), finish();
  return id;
}
static nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* a) {
  if (!begin("start")) return 0;
  const nvtxRangeId_t id = started(0);
  message(a), finish();
  return id;
}
static void NVTX_API end(nvtxRangeId_t id) {
  if (!begin("end")) return;
  fprintf(out, "\t%llu", (unsigned long long)id), finish();
}
static void NVTX_API mark_a(const char* name) {
  if (!begin("mark")) return;
  fputs("\t0\t", out), text(name), finish();
}
static void NVTX_API mark_ex(const nvtxEventAttributes_t* a) {
  if (!begin("mark")) return;
  fputs("\t0\t", out), message(a), finish();
}
static void NVTX_API name_thread(uint32_t thread, const char* name) {
  if (!begin("name")) return;
  fprintf(out, "\t%u\t", thread), text(name), finish();
}

// --- CORE2: domains
static int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  if (!begin("push")) return 0;
  fprintf(out, "\t%lu\t", number(domain)), message(a), finish();
  return 0;
}
static int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  if (!begin("pop")) return 0;
  fprintf(out, "\t%lu", number(domain)), finish();
  return 0;
}
static nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain,
                                           const nvtxEventAttributes_t* a) {
  if (!begin("start")) return 0;
  const nvtxRangeId_t id = started(number(domain));
  message(a), finish();
  return id;
}
static void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  (void)domain;
  end(id);
}
static void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* a) {
  if (!begin("mark")) return;
  fprintf(out, "\t%lu\t", number(domain)), message(a), finish();
}
static nvtxDomainHandle_t NVTX_API domain_create(const char* name) {
  static uintptr_t domains;
  if (!begin("domain")) return NULL;
  const uintptr_t id = ++domains;
  fprintf(out, "\t%lu\t", (unsigned long)id), text(name), finish();
  return (nvtxDomainHandle_t)id;
}
static nvtxStringHandle_t NVTX_API registered(nvtxDomainHandle_t domain, const char* string) {
  (void)domain;
  return (nvtxStringHandle_t)strdup(string);
}

// --- Operators: names by their hashes, for all threads
enum { kNames = 1 << 16 };
static struct {
  uint64_t hash;
  char* name;
} names[kNames];

// The hash's place, or that of none; the lock is held.
static unsigned place_of(uint64_t hash) {
  unsigned at = (unsigned)(hash % kNames);
  for (unsigned i = 0; i < kNames && names[at].name != NULL && names[at].hash != hash; ++i)
    at = (at + 1) % kNames;
  return at;
}
static void operator_line(int64_t sequence, const char* name) {
  if (!begin("operator")) return;
  fprintf(out, "\t%lld\t", (long long)sequence), text(name), finish();
}
static int operator_push(uint64_t hash, int64_t sequence) {
  pthread_mutex_lock(&lock);
  const unsigned at = place_of(hash);
  const char* const name = names[at].hash == hash ? names[at].name : NULL;
  pthread_mutex_unlock(&lock);
  if (name == NULL) return 1;
  operator_line(sequence, name);
  return 0;
}
static void operator_push_named(uint64_t hash, int64_t sequence, const char* name, uint64_t bytes) {
  char* const copy = strndup(name, bytes);
  pthread_mutex_lock(&lock);
  const unsigned at = place_of(hash);
  if (names[at].name == NULL) {
    names[at].hash = hash;
    names[at].name = copy;
  }
  pthread_mutex_unlock(&lock);
  operator_line(sequence, copy);
}
static void operator_pop(void) {
  if (begin("operator_end")) finish();
}
__attribute__((visibility("default"))) const struct FlopinjOperators* flopinj_operators(void) {
  static const struct FlopinjOperators operators = {sizeof operators, operator_push,
                                                    operator_push_named, operator_pop};
  return &operators;
}

// --- Installing
static void put(NvtxFunctionTable table, unsigned size, unsigned index, NvtxFunctionPointer f) {
  if (index < size && table[index] != NULL) *table[index] = f;
}
#define PUT(index, function) put(table, size, index, (NvtxFunctionPointer)(function))

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const NvtxExportTableCallbacks* callbacks =
      (const NvtxExportTableCallbacks*)get_export_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned size = 0;
  if (callbacks == NULL) return 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) {
    PUT(NVTX_CBID_CORE_RangePushA, push_a);
    PUT(NVTX_CBID_CORE_RangePushW, push_w);
    PUT(NVTX_CBID_CORE_RangePushEx, push_ex);
    PUT(NVTX_CBID_CORE_RangePop, pop);
    PUT(NVTX_CBID_CORE_RangeStartA, start_a);
    PUT(NVTX_CBID_CORE_RangeStartW, start_w);
    PUT(NVTX_CBID_CORE_RangeStartEx, start_ex);
    PUT(NVTX_CBID_CORE_RangeEnd, end);
    PUT(NVTX_CBID_CORE_MarkA, mark_a);
    PUT(NVTX_CBID_CORE_MarkEx, mark_ex);
    PUT(NVTX_CBID_CORE_NameOsThreadA, name_thread);
  }
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
    PUT(NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
    PUT(NVTX_CBID_CORE2_DomainRangePop, domain_pop);
    PUT(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start);
    PUT(NVTX_CBID_CORE2_DomainRangeEnd, domain_end);
    PUT(NVTX_CBID_CORE2_DomainMarkEx, domain_mark);
    PUT(NVTX_CBID_CORE2_DomainCreateA, domain_create);
    PUT(NVTX_CBID_CORE2_DomainRegisterStringA, registered);
  }
  return 1;
}
