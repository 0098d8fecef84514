// All-reduce by several ways, one file each. After any of them every rank of the group has the same
// bytes: the reduction of what all of them had.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sync/operation.h"

namespace convoy {

struct Algorithm {
  std::string_view name;
  void (*run)(const Operation& operation, std::span<std::byte> buffer);
  std::string_view idea;
};

// The first ones, in an order that only grows: a row's place is its number on the wire.
std::span<const Algorithm> algorithms();
const Algorithm& find_algorithm(std::string_view name);  // throws ConfigError
std::string algorithm_name(int row);

// Each of these is a row.
void ring(const Operation& operation, std::span<std::byte> buffer);
void halving_doubling(const Operation& operation, std::span<std::byte> buffer);
void tree(const Operation& operation, std::span<std::byte> buffer);
void reduce_broadcast(const Operation& operation, std::span<std::byte> buffer);
void torus(const Operation& operation, std::span<std::byte> buffer);
void hierarchical(const Operation& operation, std::span<std::byte> buffer);
void native(const Operation& operation, std::span<std::byte> buffer);
bool offers_native(Transport& transport);

// The two halves of the ring. After the first, every rank has its own chunk reduced and the others
// half-done; the second takes every rank's own chunk to all.
void ring_reduce_scatter(const Operation& operation, std::span<std::byte> buffer);
void ring_all_gather(const Operation& operation, std::span<std::byte> buffer);

// The two halves of the tree, from all to the root and back; root is a place in the group.
void tree_reduce(const Operation& operation, int root, std::span<std::byte> buffer);
void tree_broadcast(const Operation& operation, int root, std::span<std::byte> buffer);

}  // namespace convoy
