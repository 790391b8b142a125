// The handles that we give to callers of NVTX: domains and registered strings. The program keeps
// them for good, so they outlive recordings, and a forked child has its parent's. A handle is a
// number and points nowhere: one that we did not give is taken for "[domain]" or for
// "[registered string]". So is what finds no room, for names are bounded in number and bytes.
//
// Threads: any. Only a name that is new takes a lock.
#pragma once
#include <injector/process/edge.h>

#include <string_view>

// The types of NVTX's tables, without the implementation that a client of NVTX would get with them.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

namespace flopinj {

nvtxStringHandle_t kept_string(std::string_view text);
// Of a null handle: empty.
std::string_view registered_string(nvtxStringHandle_t) noexcept;

nvtxDomainHandle_t kept_domain(std::string_view name);
// The domain "flopinj", whose marks are numbers of ranges; null before a program has made it.
nvtxDomainHandle_t own_domain() noexcept;
// The domain's id in this recording; of a null handle, the default domain's. Interns the name at
// the first call in a recording.
StringId domain_id(Edge&, nvtxDomainHandle_t);

}  // namespace flopinj
