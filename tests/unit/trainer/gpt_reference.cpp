#include "gpt_reference.h"

#include <cmath>
#include <numbers>

namespace {

using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

// Takes parameters one tensor after another.
class Reader {
 public:
  explicit Reader(std::span<const double> all) : left_(all) {}
  Rows matrix(int rows, int columns) {
    Rows found;
    for (int r = 0; r < rows; ++r) found.push_back(vector(columns));
    return found;
  }
  Vector vector(int count) {
    const auto taken = left_.first(static_cast<size_t>(count));
    left_ = left_.subspan(taken.size());
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const double> left_;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector linear(const Rows& weight, const Vector& x) {
  Vector y;
  for (const Vector& row : weight) y.push_back(dot(row, x));
  return y;
}

struct Norm {
  Vector weight, bias;
  Vector operator()(const Vector& x) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / n;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    Vector y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i]);
    return y;
  }
};

Norm read_norm(Reader& reader, int width) {
  Vector weight = reader.vector(width), bias = reader.vector(width);
  return {std::move(weight), std::move(bias)};
}

void softmax(Vector& x) {
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v);
  for (double& v : x) v /= sum;
}

void add(Vector& to, const Vector& x) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += x[i];
}

// Of token t, whose predecessors' queries, keys and values are there too.
Vector attention(const Rows& qkv, size_t t, int heads) {
  const size_t width = qkv[t].size() / 3, each = width / static_cast<size_t>(heads);
  const auto part = [&](size_t token, size_t which, size_t head) {
    return std::span(qkv[token]).subspan(which * width + head * each, each);
  };
  Vector result(width);
  for (size_t head = 0; head < static_cast<size_t>(heads); ++head) {
    Vector scores;
    for (size_t s = 0; s <= t; ++s)
      scores.push_back(dot(part(t, 0, head), part(s, 1, head)) /
                       std::sqrt(static_cast<double>(each)));
    softmax(scores);
    for (size_t s = 0; s <= t; ++s)
      for (size_t i = 0; i < each; ++i) result[head * each + i] += scores[s] * part(s, 2, head)[i];
  }
  return result;
}

void block(Reader& reader, int width, int heads, std::vector<Rows>& sequences) {
  const Norm norm1 = read_norm(reader, width);
  const Rows qkv = reader.matrix(3 * width, width), projection = reader.matrix(width, width);
  const Norm norm2 = read_norm(reader, width);
  const Rows in = reader.matrix(4 * width, width), out = reader.matrix(width, 4 * width);
  for (Rows& tokens : sequences) {
    Rows all;
    for (const Vector& x : tokens) all.push_back(linear(qkv, norm1(x)));
    for (size_t t = 0; t < tokens.size(); ++t) {
      Vector& x = tokens[t];
      add(x, linear(projection, attention(all, t, heads)));
      Vector hidden = linear(in, norm2(x));
      for (double& v : hidden) v = gelu(v);
      add(x, linear(out, hidden));
    }
  }
}

}  // namespace

double gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double gpt_reference_loss(const trainer::GptSizes& sizes, std::span<const double> parameters,
                          std::span<const int> tokens, std::span<const int> labels) {
  Reader reader(parameters);
  const Rows of_token = reader.matrix(sizes.vocabulary, sizes.width);
  const Rows of_position = reader.matrix(sizes.context, sizes.width);
  const auto context = static_cast<size_t>(sizes.context);
  std::vector<Rows> sequences(tokens.size() / context);
  for (size_t i = 0; i < tokens.size(); ++i) {
    Vector x = of_token[static_cast<size_t>(tokens[i])];
    add(x, of_position[i % context]);
    sequences[i / context].push_back(std::move(x));
  }
  for (int i = 0; i < sizes.layers; ++i) block(reader, sizes.width, sizes.heads, sequences);
  const Norm norm = read_norm(reader, sizes.width);
  const Rows head = reader.matrix(sizes.vocabulary, sizes.width);
  double loss = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    Vector logits = linear(head, norm(sequences[i / context][i % context]));
    softmax(logits);
    loss -= std::log(logits[static_cast<size_t>(labels[i])]);
  }
  return loss / static_cast<double>(labels.size());
}
