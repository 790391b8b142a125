#include "driver/graphs/conditional.h"

#include <map>

#include "driver/graphs/graph_exec.h"

namespace simgpu {
namespace {

struct Condition {
  const Graph* graph = nullptr;  // that it was made for
  uint32_t default_value = 0;
  bool assign_default = false;
  std::atomic<uint32_t> value{0};
};

struct Conditions {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Condition>> all;  // kept: handles are never used again
};
Conditions& conditions() {
  static auto* const conditions = new Conditions;
  return *conditions;
}

std::shared_ptr<Condition> find(uint64_t handle) {
  Conditions& known = conditions();
  const std::lock_guard lock(known.mutex);
  const auto it = known.all.find(handle);
  return it != known.all.end() ? it->second : nullptr;
}

bool has_size(const CUDA_CONDITIONAL_NODE_PARAMS& params) {
  switch (params.type) {
    case CU_GRAPH_COND_TYPE_IF:
      return params.size == 1 || params.size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return params.size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return params.size > 0;
    default:
      return false;
  }
}

// Which body a value asks for; null: none.
const Graph* chosen(const ConditionalWork& work, uint32_t value) {
  switch (work.type) {
    case CU_GRAPH_COND_TYPE_IF:
      if (value != 0) return work.bodies[0].get();
      return work.bodies.size() == 2 ? work.bodies[1].get() : nullptr;
    case CU_GRAPH_COND_TYPE_WHILE:
      return value != 0 ? work.bodies[0].get() : nullptr;
    default:
      return value < work.bodies.size() ? work.bodies[value].get() : nullptr;
  }
}

}  // namespace

CUresult create_condition(const Graph& graph, unsigned int default_value, unsigned int flags,
                          CUgraphConditionalHandle* handle) {
  if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  auto condition = std::make_shared<Condition>();
  condition->graph = &graph;
  condition->default_value = default_value;
  condition->assign_default = flags != 0;
  Conditions& known = conditions();
  const std::lock_guard lock(known.mutex);
  *handle = known.all.size() + 1;
  known.all.emplace(*handle, std::move(condition));
  return CUDA_SUCCESS;
}

void set_condition(uint64_t handle, uint32_t value) {
  if (const auto condition = find(handle)) condition->value = value;
}

CUresult make_conditional(const Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS& params,
                          ConditionalWork& work) {
  const auto condition = find(params.handle);
  if (!condition || condition->graph != &graph || !has_size(params))
    return CUDA_ERROR_INVALID_VALUE;
  work.handle = params.handle;
  work.type = params.type;
  work.handles = std::make_shared<std::vector<CUgraph>>();
  for (unsigned int i = 0; i < params.size; ++i) {
    work.bodies.push_back(create_graph());
    work.bodies.back()->owned_by_node = true;
    work.handles->push_back(handle_of(*work.bodies.back()));
  }
  params.phGraph_out = work.handles->data();
  return CUDA_SUCCESS;
}

bool has_conditionals(const Graph& graph) {
  const std::lock_guard lock(graph.mutex);
  for (const auto& node : graph.nodes)
    if (std::holds_alternative<ConditionalWork>(node->work)) return true;
  return false;
}

void apply_defaults(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    const auto* work = std::get_if<ConditionalWork>(&node->work);
    if (work == nullptr) continue;
    if (const auto condition = find(work->handle); condition && condition->assign_default)
      condition->value = condition->default_value;
    for (const auto& body : work->bodies) apply_defaults(*body);
  }
}

CUresult run_conditional(Stream& stream, const ConditionalWork& work, const GraphOrigin& origin) {
  const auto condition = find(work.handle);
  for (;;) {
    const Graph* const body = chosen(work, condition->value);
    if (body == nullptr) return CUDA_SUCCESS;
    for (const GraphNode* node : execution_order(*body))
      if (const CUresult result = run_work(stream, node->work, {origin.graph_id, node->id});
          result != CUDA_SUCCESS)
        return result;
    if (work.type != CU_GRAPH_COND_TYPE_WHILE) return CUDA_SUCCESS;
  }
}

}  // namespace simgpu
