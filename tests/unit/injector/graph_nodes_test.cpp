// The tables of graphs' kernel nodes, without a driver: handles are numbers here.
#include <injector/graphs/graph_nodes.h>

#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

CUgraph graph(uintptr_t n) { return reinterpret_cast<CUgraph>(n); }
CUgraphNode node(uintptr_t n) { return reinterpret_cast<CUgraphNode>(n); }
CUgraphExec executable(uintptr_t n) { return reinterpret_cast<CUgraphExec>(n); }
NodeKernel kernel(uint32_t signature) { return {SignatureId{signature}, {}, 0, 0}; }

std::vector<uint32_t> signatures(const std::vector<SourceNode>& nodes) {
  std::vector<uint32_t> result;
  for (const SourceNode& n : nodes) result.push_back(n.kernel.signature.value);
  return result;
}

}  // namespace

TEST_CASE("a graph's kernels come in the order they were made, then those of children and bodies") {
  GraphNodes nodes;
  CHECK(nodes.put(graph(1), node(11), kernel(1)));
  CHECK(nodes.put(graph(2), node(21), kernel(2)));
  nodes.add_child(graph(1), {node(19), graph(2), {}});
  nodes.add_conditional(graph(1), node(18), {graph(3)});
  CHECK(nodes.put(graph(3), node(31), kernel(3)));
  CHECK(nodes.put(graph(1), node(12), kernel(4)));
  const auto all = nodes.flatten(graph(1));
  CHECK(signatures(all) == std::vector<uint32_t>{1, 4, 2, 3});
  CHECK_FALSE(all[2].conditional);
  CHECK(all[3].conditional);
  CHECK(signatures(nodes.contents_of_child(node(19))) == std::vector<uint32_t>{2});
}

TEST_CASE("a graph waits where one inside of it does, and only that one") {
  GraphNodes nodes;
  nodes.add_child(graph(1), {node(19), graph(2), {}});
  nodes.add_conditional(graph(2), node(18), {graph(3), graph(4)});
  nodes.put(graph(5), node(51), kernel(1));
  nodes.add_waiting(graph(4));
  for (const uintptr_t waiting : {1, 2, 4}) CHECK(nodes.waits(graph(waiting)));
  for (const uintptr_t other : {3, 5, 6}) CHECK_FALSE(nodes.waits(graph(other)));
  nodes.drop_graph(graph(4));  // its handle may come back
  CHECK_FALSE(nodes.waits(graph(1)));
}

TEST_CASE("what is dropped is gone, with what it holds, and its handles may come back") {
  GraphNodes nodes;
  nodes.put(graph(1), node(11), kernel(1));
  nodes.put(graph(2), node(21), kernel(2));
  nodes.add_child(graph(1), {node(19), graph(2), {}});
  nodes.drop_graph(graph(1));
  CHECK(nodes.find(node(11)) == nullptr);
  CHECK(nodes.find(node(21)) == nullptr);
  CHECK(nodes.flatten(graph(1)).empty());

  nodes.put(graph(1), node(11), kernel(5));
  nodes.put(graph(4), node(11), kernel(6));  // the handle is another graph's node now
  CHECK(nodes.flatten(graph(1)).empty());
  CHECK(signatures(nodes.flatten(graph(4))) == std::vector<uint32_t>{6});
  nodes.put(nullptr, node(11), kernel(7));  // new parameters; the graph is not said
  CHECK(signatures(nodes.flatten(graph(4))) == std::vector<uint32_t>{7});
  nodes.drop_node(node(11), false);
  CHECK(nodes.flatten(graph(4)).empty());
}

TEST_CASE("an update pairs nodes, and changes nothing where they do not pair") {
  GraphNodes nodes;
  ExecutableGraph made;
  made.nodes = {{node(1), kernel(1)}, {node(2), kernel(2)}};
  REQUIRE(nodes.put_executable(executable(1), made));
  ExecutableGraph& graph = *nodes.executable(executable(1));
  CHECK_FALSE(graph.update({{node(1), kernel(1)}}, {}));
  CHECK(graph.nodes[0].kernel.signature.value == 1);
  CHECK(graph.update({{node(2), kernel(2)}}, {{node(9), kernel(8)}}));
  CHECK(graph.nodes[0].kernel.signature.value == 1);
  CHECK(graph.nodes[1].kernel.signature.value == 8);
  CHECK(graph.find(node(3)) == nullptr);
  CHECK(nodes.drop_executable(executable(1)));
  CHECK_FALSE(nodes.drop_executable(executable(1)));
}

TEST_CASE("so many executable graphs are followed and no more, until one is destroyed") {
  GraphNodes nodes;
  for (uintptr_t n = 1; n <= GraphNodes::kMostExecutables; ++n)
    REQUIRE(nodes.put_executable(executable(n), {}));
  constexpr uintptr_t kNext = GraphNodes::kMostExecutables + 1;
  CHECK_FALSE(nodes.put_executable(executable(kNext), {}));
  CHECK(nodes.executable(executable(kNext)) == nullptr);
  CHECK(nodes.put_executable(executable(7), {}));  // in its own place
  CHECK(nodes.drop_executable(executable(1)));
  CHECK(nodes.put_executable(executable(kNext), {}));
}
