// Calls around modules and memory: linking, fat binaries, pools, copies of several dimensions,
// occupancy, limits.
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gpu.h"

namespace {

// Kernels write what a function of theirs gives; both modules keep a `value` and a `scale` of
// their own, and one defines what the other declares.
constexpr const char* kFirst = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 scale = 10;
.extern .func (.param .b32 r) shared_by_both(.param .b32 x);
.func (.param .b32 r) value() {
  .reg .b32 %r<2>;
  ld.global.u32 %r1, [scale];
  st.param.b32 [r], %r1;
  ret;
}
.visible .entry first(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  { .param .b32 back; call.uni (back), value, (); ld.param.b32 %r1, [back]; }
  { .param .b32 back; .param .b32 given; st.param.b32 [given], %r1;
    call.uni (back), shared_by_both, (given); ld.param.b32 %r2, [back]; }
  st.global.u32 [%rd1], %r2;
  ret;
})";
constexpr const char* kSecond = R"(.version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 scale = 20;
.visible .func (.param .b32 r) shared_by_both(.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, 5;
  st.param.b32 [r], %r2;
  ret;
}
.func (.param .b32 r) value() {
  .reg .b32 %r<2>;
  ld.global.u32 %r1, [scale];
  st.param.b32 [r], %r1;
  ret;
}
.visible .entry second(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  { .param .b32 back; call.uni (back), value, (); ld.param.b32 %r1, [back]; }
  st.global.u32 [%rd1], %r1;
  ret;
})";

CUresult add(CUlinkState link, CUjitInputType type, const std::string& data) {
  return cuLinkAddData(link, type, const_cast<char*>(data.data()), data.size(), "input", 0, nullptr,
                       nullptr);
}

int result_of(CUmodule module, const char* kernel) {
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, kernel));
  const Array<int> out({-1});
  check(Gpu::try_launch(function, 1, 1, 0, nullptr, out.address()));
  return out.read()[0];
}

class Context {
 public:
  Context() {
    check(cuInit(0));
    check(cuCtxCreate(&context_, nullptr, 0, 0));
  }
  ~Context() { cuCtxDestroy(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  CUcontext context_ = nullptr;
};

// As nvcc -fatbin writes them: a header of 16 bytes; of each part a header of 64 bytes, with its
// kind, its size, the compressed size where it is compressed, and its architecture.
struct Part {
  uint16_t kind;  // 1: PTX, 2: machine code
  uint32_t architecture;
  std::string contents;
  bool compressed = false;
};
std::string fatbin(const std::vector<Part>& parts) {
  std::string body;
  const auto put = [&body](auto value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const Part& part : parts) {
    std::string contents = part.contents;
    contents.resize((contents.size() + 8) / 8 * 8);
    put(part.kind);
    put(uint16_t{0x101});
    put(uint32_t{64});
    put(uint64_t{contents.size()});
    put(static_cast<uint32_t>(part.compressed ? contents.size() : 0));
    put(uint32_t{0});
    put(uint32_t{0x90000});
    put(part.architecture);
    for (int i = 0; i < 4; ++i) put(uint64_t{0});
    body += contents;
  }
  std::string whole;
  std::swap(whole, body);
  put(uint32_t{0xBA55ED50});
  put(uint16_t{1});
  put(uint16_t{16});
  put(uint64_t{whole.size()});
  return body + whole;
}
std::string gives(int number) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry give(.param .u64 out) {\n"
         "  .reg .b64 %rd<2>;\n  .reg .b32 %r<2>;\n  ld.param.u64 %rd1, [out];\n  mov.u32 %r1, " +
         std::to_string(number) + ";\n  st.global.u32 [%rd1], %r1;\n  ret;\n}\n";
}

}  // namespace

TEST_CASE("A large block begins at a page of the device, and all memory can be had") {
  const Gpu gpu;
  CUdeviceptr small = 0, large = 0, all = 0;
  check(cuMemAlloc(&small, 1));
  check(cuMemAlloc(&large, size_t{1} << 20));
  CHECK(large % (size_t{1} << 21) == 0);
  CUdeviceptr between = 0;  // what was skipped is not lost
  check(cuMemAlloc(&between, 1));
  CHECK(between == small + 512);
  for (const CUdeviceptr one : {small, large, between}) check(cuMemFree(one));
  size_t free = 0, total = 0;
  check(cuMemGetInfo(&free, &total));
  check(cuMemAlloc(&all, free));
  check(cuMemFree(all));
}

TEST_CASE("Managed memory is the program's, too, until it is freed") {
  const Gpu gpu;
  int has_managed = 0;
  check(cuDeviceGetAttribute(&has_managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, gpu.device));
  CHECK(has_managed == 1);
  CUdeviceptr managed = 0, plain = 0;
  check(cuMemAllocManaged(&managed, 16, CU_MEM_ATTACH_GLOBAL));
  check(cuMemAlloc(&plain, 16));
  *reinterpret_cast<int*>(managed) = 5;
  int value = 0;
  check(cuMemcpyDtoH(&value, managed, sizeof value));
  CHECK(value == 5);
  bool is_managed = false;
  check(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 8));
  CHECK(is_managed);
  check(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, plain));
  CHECK(!is_managed);
  CHECK(cuMemAllocManaged(&managed, 16, 0) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(managed));
  CHECK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) ==
        CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(plain));
}

TEST_CASE("Functions of what is not simulated are there, and say so") {
  const Gpu gpu;
  for (const char* const name : {"cuArrayCreate",
                                 "cuArray3DCreate",
                                 "cuArray3DGetDescriptor",
                                 "cuArrayDestroy",
                                 "cuMipmappedArrayCreate",
                                 "cuMipmappedArrayGetLevel",
                                 "cuMipmappedArrayDestroy",
                                 "cuTexObjectCreate",
                                 "cuTexObjectDestroy",
                                 "cuSurfObjectCreate",
                                 "cuSurfObjectDestroy",
                                 "cuImportExternalMemory",
                                 "cuExternalMemoryGetMappedBuffer",
                                 "cuExternalMemoryGetMappedMipmappedArray",
                                 "cuDestroyExternalMemory",
                                 "cuImportExternalSemaphore",
                                 "cuSignalExternalSemaphoresAsync",
                                 "cuWaitExternalSemaphoresAsync",
                                 "cuDestroyExternalSemaphore",
                                 "cuIpcGetMemHandle",
                                 "cuIpcOpenMemHandle",
                                 "cuIpcCloseMemHandle",
                                 "cuIpcGetEventHandle",
                                 "cuIpcOpenEventHandle"}) {
    CAPTURE(name);
    void* function = nullptr;
    CHECK(cuGetProcAddress(name, &function, 13000, 0, nullptr) == CUDA_SUCCESS);
    CHECK(function != nullptr);
  }
  CUtexObject texture = 0;
  const CUDA_RESOURCE_DESC resource{};
  const CUDA_TEXTURE_DESC sampling{};
  CHECK(cuTexObjectCreate(&texture, &resource, &sampling, nullptr) == CUDA_ERROR_NOT_SUPPORTED);

  // As before CUDA 4.0.
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DEFAULT));
  void* old = nullptr;
  check(cuGetProcAddress("cuEventDestroy", &old, 3000, 0, nullptr));
  REQUIRE(old != nullptr);
  CHECK(reinterpret_cast<CUresult (*)(CUevent)>(old)(event) == CUDA_SUCCESS);
  CHECK(reinterpret_cast<CUresult (*)(CUevent)>(old)(event) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("PTX of several modules is linked") {
  const Context context;
  CUlinkState link = nullptr;
  check(cuLinkCreate(0, nullptr, nullptr, &link));
  check(add(link, CU_JIT_INPUT_PTX, kFirst));
  check(add(link, CU_JIT_INPUT_PTX, kSecond));
  void* image = nullptr;
  size_t bytes = 0;
  check(cuLinkComplete(link, &image, &bytes));
  const std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + bytes);
  CHECK(add(link, CU_JIT_INPUT_PTX, kSecond) == CUDA_ERROR_INVALID_VALUE);
  check(cuLinkDestroy(link));
  CHECK(cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, copy.data()));
  CHECK(result_of(module, "first") == 15);
  CHECK(result_of(module, "second") == 20);
}

TEST_CASE("what cannot be linked is refused, and the log says why") {
  const Context context;
  std::array<char, 200> errors{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors.data(), reinterpret_cast<void*>(errors.size())};
  CUlinkState link = nullptr;
  check(cuLinkCreate(2, options, values, &link));
  CHECK(add(link, CU_JIT_INPUT_PTX, "no PTX at all") == CUDA_ERROR_INVALID_PTX);
  CHECK(add(link, CU_JIT_INPUT_PTX, ".version 8.0\n.frob\n") == CUDA_ERROR_INVALID_PTX);
  CHECK(std::string(errors.data()) ==
        "cannot link input: PTX, line 2: the directive .frob is not known\n");
  CHECK(reinterpret_cast<size_t>(values[1]) == std::strlen(errors.data()));
  CHECK(add(link, CU_JIT_INPUT_CUBIN, "\177ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(add(link, CU_JIT_INPUT_LIBRARY, "!<arch>") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, nullptr, nullptr) ==
        CUDA_ERROR_FILE_NOT_FOUND);
  void* image = nullptr;
  CHECK(cuLinkComplete(link, &image, nullptr) == CUDA_ERROR_INVALID_VALUE);  // nothing to link
  check(add(link, CU_JIT_INPUT_PTX, kFirst));
  CHECK(cuLinkComplete(link, &image, nullptr) == CUDA_ERROR_INVALID_PTX);
  CHECK(std::string(errors.data()).find("shared_by_both") != std::string::npos);
  check(cuLinkDestroy(link));

  SECTION("as are two definitions of one name") {
    check(cuLinkCreate(0, nullptr, nullptr, &link));
    check(add(link, CU_JIT_INPUT_PTX, kSecond));
    check(add(link, CU_JIT_INPUT_PTX, kSecond));
    CHECK(cuLinkComplete(link, &image, nullptr) == CUDA_ERROR_INVALID_PTX);
    check(cuLinkDestroy(link));
  }
}

TEST_CASE("of a fat binary the PTX for the newest architecture that the device has runs") {
  const Context context;
  CUmodule module = nullptr;
  const std::string several =
      fatbin({{1, 80, gives(80)}, {2, 90, "\177ELF"}, {1, 90, gives(90)}, {1, 100, gives(100)}});
  check(cuModuleLoadFatBinary(&module, several.data()));
  CHECK(result_of(module, "give") == 90);
  CUlinkState link = nullptr;
  check(cuLinkCreate(0, nullptr, nullptr, &link));
  check(add(link, CU_JIT_INPUT_FATBINARY, several));
  check(cuLinkDestroy(link));
  // What nvcc embeds in a program points to one.
  const struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* data = nullptr;
    void* further = nullptr;
  } wrapper{.data = several.data()};
  check(cuModuleLoadData(&module, &wrapper));
  CHECK(result_of(module, "give") == 90);

  const auto refused = [&](const std::vector<Part>& parts) {
    return cuModuleLoadData(&module, fatbin(parts).data());
  };
  CHECK(refused({}) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(refused({{2, 90, "\177ELF"}}) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(refused({{1, 100, gives(100)}}) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(refused({{1, 90, "(/\xb5/\xfd", true}}) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string damaged = several;
  damaged[24] = 127;  // the first part is larger than all
  damaged[27] = 127;
  CHECK(cuModuleLoadData(&module, damaged.data()) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("modules that come and go, ten thousand of them, leave memory as it was") {
  const Context context;
  const std::string image = fatbin({{1, 80, kSecond}});
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      CUmodule module = nullptr;
      check(cuModuleLoadData(&module, i % 2 == 0 ? kSecond : image.data()));
      check(cuModuleUnload(module));
    }
  };
  come_and_go(100);
  size_t device_before = 0, device_after = 0, total = 0;
  check(cuMemGetInfo(&device_before, &total));
  const size_t before = mallinfo2().uordblks;
  come_and_go(10'000);
  check(cuMemGetInfo(&device_after, &total));
  CHECK(device_after == device_before);
  CHECK(mallinfo2().uordblks < before + 10'000);  // less than a byte each
}

TEST_CASE("memory comes from pools, and goes back in the order of a stream") {
  const Context context;
  int supported = 0;
  check(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
  CHECK(supported == 1);
  CUmemoryPool standard = nullptr, current = nullptr, own = nullptr;
  check(cuDeviceGetDefaultMemPool(&standard, 0));
  check(cuDeviceGetMemPool(&current, 0));
  CHECK(standard == current);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  check(cuMemPoolCreate(&own, &properties));
  check(cuDeviceSetMemPool(0, own));

  const auto used = [](CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    check(cuMemPoolGetAttribute(pool, which, &value));
    return value;
  };
  size_t before = 0, now = 0, total = 0;
  check(cuMemGetInfo(&before, &total));
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = 0, b = 0, c = 0;
  check(cuMemAllocAsync(&a, 1 << 20, stream));
  check(cuMemAllocAsync(&b, 1 << 21, stream));
  check(cuMemAllocFromPoolAsync(&c, 4096, standard, stream));
  check(cuMemsetD8Async(a, 7, 1 << 20, stream));
  CHECK(used(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 3 << 20);
  CHECK(used(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4096);
  std::vector<unsigned char> host(1 << 20);
  check(cuMemcpyDtoHAsync(host.data(), a, host.size(), stream));
  check(cuMemFreeAsync(a, stream));
  check(cuStreamSynchronize(stream));
  CHECK(std::ranges::count(host, 7) == 1 << 20);
  CHECK(cuMemsetD8(a, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(a, stream) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(b));  // also frees what came from a pool
  check(cuMemFreeAsync(c, stream));
  check(cuStreamSynchronize(stream));
  CHECK(used(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(used(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 3 << 20);
  check(cuMemGetInfo(&now, &total));
  CHECK(now == before);

  cuuint64_t threshold = 12345;
  check(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(used(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 12345);
  check(cuMemPoolTrimTo(own, 0));
  check(cuMemPoolDestroy(own));
  CHECK(cuMemPoolDestroy(own) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolDestroy(standard) == CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceGetMemPool(&current, 0));
  CHECK(standard == current);

  // Graphs have no memory nodes.
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemAllocAsync(&a, 16, stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check(cuStreamDestroy(stream));
}

TEST_CASE("copies and fills of two and three dimensions") {
  const Context context;
  CUdeviceptr device = 0;
  size_t pitch = 0;
  check(cuMemAllocPitch(&device, &pitch, 10, 12, 4));
  CHECK(pitch >= 10);
  check(cuMemsetD2D8(device, pitch, 1, 10, 12));
  check(cuMemsetD2D16(device + 2, pitch, 0x0202, 2, 3));
  std::vector<unsigned char> host(10 * 12);
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = device;
  plane.srcPitch = pitch;
  plane.dstMemoryType = CU_MEMORYTYPE_HOST;
  plane.dstHost = host.data();
  plane.dstPitch = 10;
  plane.WidthInBytes = 10;
  plane.Height = 12;
  check(cuMemcpy2D(&plane));
  std::vector<unsigned char> expected(10 * 12, 1);
  for (size_t row = 0; row < 3; ++row)
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(row * 10 + 2), 4, 2);
  CHECK(host == expected);

  // Two slices of 3 rows of 4 bytes, from within a box on the host to within one on the device.
  std::vector<unsigned char> box(5 * 6 * 7);  // 5 slices of 6 rows of 7
  std::iota(box.begin(), box.end(), 0);
  const Array<unsigned char> there(std::vector<unsigned char>(4 * 5 * 8));  // 4 of 5 of 8
  CUDA_MEMCPY3D solid{};
  solid.srcMemoryType = CU_MEMORYTYPE_HOST;
  solid.srcHost = box.data();
  solid.srcPitch = 7;
  solid.srcHeight = 6;
  solid.srcXInBytes = 2;
  solid.srcY = 1;
  solid.srcZ = 3;
  solid.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  solid.dstDevice = there.address();
  solid.dstPitch = 8;
  solid.dstHeight = 5;
  solid.dstXInBytes = 3;
  solid.dstY = 2;
  solid.dstZ = 1;
  solid.WidthInBytes = 4;
  solid.Height = 3;
  solid.Depth = 2;
  check(cuMemcpy3DAsync(&solid, nullptr));
  check(cuCtxSynchronize());
  std::vector<unsigned char> right(4 * 5 * 8);
  for (size_t z = 0; z < 2; ++z)
    for (size_t y = 0; y < 3; ++y)
      for (size_t x = 0; x < 4; ++x)
        right[(z + 1) * 40 + (y + 2) * 8 + x + 3] = box[(z + 3) * 42 + (y + 1) * 7 + x + 2];
  CHECK(there.read() == right);

  plane.srcPitch = 9;  // less than a row
  CHECK(cuMemcpy2D(&plane) == CUDA_ERROR_INVALID_VALUE);
  plane.srcPitch = pitch;
  plane.Height = 13;  // more than there is
  CHECK(cuMemcpy2DUnaligned(&plane) == CUDA_ERROR_INVALID_VALUE);
  plane.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  CHECK(cuMemcpy2D(&plane) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemsetD2D32(device, 4, 0, 2, 2) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(device));
}

TEST_CASE("occupancy is the modelled chip's") {
  const Context context;
  CUmodule module = nullptr;
  const std::string bounded = gives(1).replace(gives(1).find(") {"), 3, ") .maxntid 96 {");
  check(cuModuleLoadData(&module, bounded.c_str()));
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, "give"));
  int blocks = 0, grid = 0, block = 0, threads = 0, processors = 0;
  check(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  CHECK(threads == 96);
  check(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  check(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 96, 0, 0));
  CHECK(blocks == 2048 / 96);
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0));
  CHECK(blocks == 0);
  check(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
  CHECK(block == 64);  // 32 of 64 threads fill the processor, 21 of 96 do not
  CHECK(grid == 32 * processors);
  size_t shared = 0;
  check(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function, 4, 64));
  CHECK(shared == 228 * 1024 / 4 - 1024);
  CUlaunchConfig config{};
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  config.gridDimX = config.gridDimY = config.gridDimZ = 8;
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {4, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  int size = 0, clusters = 0;
  check(cuOccupancyMaxPotentialClusterSize(&size, function, &config));
  CHECK(size == 8);
  check(cuOccupancyMaxActiveClusters(&clusters, function, &config));
  CHECK(clusters == 32 * processors / 4);
}

TEST_CASE("a launch has the threads that .reqntid and .maxntid say") {
  const Context context;
  const auto launched = [](const char* directive, unsigned x, unsigned y) {
    CUmodule module = nullptr;
    std::string text = gives(1);
    text.replace(text.find(") {"), 3, std::string(") ") + directive + " {");
    check(cuModuleLoadData(&module, text.c_str()));
    CUfunction function = nullptr;
    check(cuModuleGetFunction(&function, module, "give"));
    const Array<int> out({0});
    CUdeviceptr address = out.address();
    void* params[] = {&address};
    return cuLaunchKernel(function, 1, 1, 1, x, y, 1, 0, nullptr, params, nullptr);
  };
  CHECK(launched(".reqntid 32, 2", 32, 2) == CUDA_SUCCESS);
  CHECK(launched(".reqntid 32, 2", 64, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launched(".maxntid 32, 2", 64, 1) == CUDA_SUCCESS);
  CHECK(launched(".maxntid 32, 2", 65, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an executable graph, as programs older than 12.0 make it, gets another copy") {
  const Context context;
  const std::vector<int> host{1, 2, 3, 4};
  const Array<int> a(host), b(std::vector<int>{5, 6, 7, 8}), to(std::vector<int>(4));
  const auto copy_of = [&](CUdeviceptr from) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to.address();
    copy.WidthInBytes = sizeof(int) * 4;
    copy.Height = copy.Depth = 1;
    return copy;
  };
  CUcontext current = nullptr;
  check(cuCtxGetCurrent(&current));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  check(cuGraphCreate(&graph, 0));
  CUDA_MEMCPY3D copy = copy_of(a.address());
  check(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, current));
  using Instantiate = CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
  const auto instantiate =
      reinterpret_cast<Instantiate>(dlsym(RTLD_DEFAULT, "cuGraphInstantiate_v2"));
  REQUIRE(instantiate != nullptr);
  check(instantiate(&exec, graph, nullptr, nullptr, 0));
  check(cuGraphLaunch(exec, nullptr));
  CHECK(to.read() == host);
  copy = copy_of(b.address());
  check(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current));
  check(cuGraphLaunch(exec, nullptr));
  CHECK(to.read() == b.read());
  check(cuGraphExecDestroy(exec));
  check(cuGraphDestroy(graph));
}

TEST_CASE("limits are kept, and those that there are not are said to be unknown") {
  const Context context;
  size_t value = 0;
  check(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  CHECK(value == 8 << 20);
  check(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
  check(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  CHECK(value == 1 << 20);
  CHECK(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1) == CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST_CASE("kernels of a library are asked, and its variables found") {
  const Context context;
  CUlibrary library = nullptr, same = nullptr;
  check(cuLibraryLoadData(&library, kSecond, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  check(cuLibraryGetKernel(&kernel, library, "second"));
  check(cuKernelGetLibrary(&same, kernel));
  CHECK(same == library);
  const char* name = nullptr;
  check(cuKernelGetName(&name, kernel));
  CHECK(std::string(name) == "second");
  size_t offset = 1, bytes = 0;
  check(cuKernelGetParamInfo(kernel, 0, &offset, &bytes));
  CHECK(offset == 0);
  CHECK(bytes == 8);
  int value = 0;
  check(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  CHECK(value == 1024);
  check(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, kernel, 0));
  check(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
  CHECK(value == 65536);
  CUdeviceptr address = 0;
  check(cuLibraryGetGlobal(&address, &bytes, library, "scale"));
  CHECK(bytes == 4);
  check(cuMemsetD32(address, 77, 1));
  CUmodule module = nullptr;
  check(cuLibraryGetModule(&module, library));
  CHECK(result_of(module, "second") == 77);
  check(cuLibraryUnload(library));
}
