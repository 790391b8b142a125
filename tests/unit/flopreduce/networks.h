// The layers of thirteen image classifiers, written from their papers and torchvision's tables:
// convolutions and fully connected layers with their sizes, for one image of 3 x 224 x 224 and ten
// classes. Nothing of flopreduce is in here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace flopinj::test {

struct NetworkLayer {
  bool convolution = true;
  int64_t in = 0, out = 0;       // channels or features
  int64_t size = 1, result = 1;  // side of the image before and after
  int64_t kernel = 1, stride = 1, padding = 0, groups = 1;
};

class Network {
 public:
  std::vector<NetworkLayer> layers;

  Network& conv(int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t groups = 1) {
    NetworkLayer l{true, channels_, out, size_, 0, kernel, stride, padding, groups};
    l.result = side(size_, kernel, stride, padding);
    layers.push_back(l);
    channels_ = out;
    size_ = l.result;
    return *this;
  }
  Network& pool(int64_t kernel, int64_t stride, int64_t padding = 0) {
    size_ = side(size_, kernel, stride, padding);
    return *this;
  }
  Network& pool_to(int64_t size) {
    size_ = size;
    return *this;
  }
  Network& linear(int64_t out) {
    layers.push_back({false, channels_ * size_ * size_, out});
    channels_ = out;
    size_ = 1;
    return *this;
  }
  int64_t channels() const { return channels_; }
  int64_t size() const { return size_; }
  // A branch beside what came since: 1x1 convolution of what the block began with.
  Network& shortcut(int64_t in, int64_t size, int64_t out, int64_t stride) {
    layers.push_back({true, in, out, size, side(size, 1, stride, 0), 1, stride, 0, 1});
    return *this;
  }
  // Squeeze and excitation: two 1x1 convolutions of the channels' means.
  Network& squeeze(int64_t narrow) {
    layers.push_back({true, channels_, narrow, 1, 1, 1, 1, 0, 1});
    layers.push_back({true, narrow, channels_, 1, 1, 1, 1, 0, 1});
    return *this;
  }

 private:
  static int64_t side(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
    int64_t positions = 0;  // counted one by one
    for (int64_t at = -padding; at + kernel <= size + padding; at += stride) ++positions;
    return positions;
  }
  int64_t channels_ = 3;
  int64_t size_ = 224;
};

inline Network alexnet() {
  Network n;
  n.conv(64, 11, 4, 2).pool(3, 2).conv(192, 5, 1, 2).pool(3, 2);
  n.conv(384, 3, 1, 1).conv(256, 3, 1, 1).conv(256, 3, 1, 1).pool(3, 2);
  return n.linear(4096).linear(4096).linear(10);
}

// How many 3x3 convolutions in each of the five stages.
inline Network vgg(const std::vector<int>& stages) {
  const int64_t widths[] = {64, 128, 256, 512, 512};
  Network n;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int i = 0; i < stages[stage]; ++i) n.conv(widths[stage], 3, 1, 1);
    n.pool(2, 2);
  }
  return n.linear(4096).linear(4096).linear(10);
}

// Blocks in each of the four stages; `width` is what a bottleneck's inner layers are multiplied by,
// 0 for blocks of two 3x3 convolutions.
inline Network resnet(const std::vector<int>& stages, int64_t width) {
  Network n;
  n.conv(64, 7, 2, 3).pool(3, 2, 1);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int64_t planes = int64_t{64} << stage;
    const int64_t out = width == 0 ? planes : 4 * planes;
    for (int i = 0; i < stages[stage]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const int64_t in = n.channels(), size = n.size();
      if (width == 0)
        n.conv(planes, 3, stride, 1).conv(planes, 3, 1, 1);
      else
        n.conv(planes * width, 1, 1, 0).conv(planes * width, 3, stride, 1).conv(out, 1, 1, 0);
      if (in != out || stride != 1) n.shortcut(in, size, out, stride);
    }
  }
  return n.pool_to(1).linear(10);
}

struct Inverted {
  int64_t expansion, out, blocks, stride, kernel;
};

// Inverted bottlenecks, with squeeze and excitation (a quarter of the block's input) or without.
inline Network mobile(const std::vector<Inverted>& stages, bool squeeze) {
  Network n;
  n.conv(32, 3, 2, 1);
  for (const auto& s : stages) {
    for (int64_t i = 0; i < s.blocks; ++i) {
      const int64_t in = n.channels(), inner = in * s.expansion;
      if (s.expansion != 1) n.conv(inner, 1, 1, 0);
      n.conv(inner, s.kernel, i == 0 ? s.stride : 1, s.kernel / 2, inner);
      if (squeeze) n.squeeze(in / 4 > 1 ? in / 4 : 1);
      n.conv(s.out, 1, 1, 0);
    }
  }
  return n.conv(1280, 1, 1, 0).pool_to(1).linear(10);
}

struct NamedNetwork {
  std::string name;
  Network network;
  double forward_million = 0;  // multiply-adds, as known
  double ratio = 0;            // backward / forward, as known; 0: not given
};

inline std::vector<NamedNetwork> networks() {
  const std::vector<Inverted> v2 = {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 32, 3, 2, 3},
                                    {6, 64, 4, 2, 3}, {6, 96, 3, 1, 3}, {6, 160, 3, 2, 3},
                                    {6, 320, 1, 1, 3}};
  const std::vector<Inverted> b0 = {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5},
                                    {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5},
                                    {6, 320, 1, 1, 3}};
  return {{"alexnet", alexnet(), 710.13, 1.901},
          {"vgg11", vgg({1, 1, 2, 2, 2}), 7605.04, 0},
          {"vgg13", vgg({2, 2, 2, 2, 2}), 11304.41, 0},
          {"vgg16", vgg({2, 2, 3, 3, 3}), 15466.21, 1.994},
          {"vgg19", vgg({2, 2, 4, 4, 4}), 19628.01, 0},
          {"resnet18", resnet({2, 2, 2, 2}, 0), 1813.57, 1.935},
          {"resnet34", resnet({3, 4, 6, 3}, 0), 3663.25, 1.968},
          {"resnet50", resnet({3, 4, 6, 3}, 1), 4087.16, 1.971},
          {"resnet101", resnet({3, 4, 23, 3}, 1), 7799.38, 0},
          {"resnet152", resnet({3, 8, 36, 3}, 1), 11511.60, 0},
          {"wide_resnet50_2", resnet({3, 4, 6, 3}, 2), 11395.99, 0},
          {"mobilenet_v2", mobile(v2, false), 299.51, 1.964},
          {"efficientnet_b0", mobile(b0, true), 384.55, 1.972}};
}

}  // namespace flopinj::test
