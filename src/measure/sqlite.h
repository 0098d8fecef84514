// A database file and statements on it, with failures as DataError that name the file and the
// remedy. The only folder that includes sqlite3.h. One task at a time uses a Database and its
// statements; several may have databases of their own on one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace convoy {

// Another process holds the file, and did not let go in time. Nothing was changed.
class StoreBusy : public DataError {
 public:
  using DataError::DataError;
};

class Statement;

enum class Access { read, write, create };  // create: write, and make the file where there is none

class Database {
 public:
  Database(const std::filesystem::path& path, Access access);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Readers beside a writer. Two that begin it at once would deadlock, so that SQLite does not wait
  // here of its own accord: this does.
  void write_ahead();
  // How long to wait for another process before StoreBusy; 5 at first.
  void set_patience_s(double seconds);

  void run(const std::string& sql);  // any number of statements, without results
  Statement prepare(std::string_view sql);
  std::int64_t last_id() const;                          // of the row that was inserted last
  std::int64_t changes() const;                          // rows that the last statement changed
  [[noreturn]] void fail(std::string_view doing) const;  // with what SQLite says about it

 private:
  std::filesystem::path path_;
  sqlite3* handle_ = nullptr;
};

// One statement, with its parameters and the row it stands at. Outlived by its database.
class Statement {
 public:
  Statement(const Database& database, sqlite3_stmt* handle)
      : database_(&database), handle_(handle) {}
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  // Parameters ?1, ?2, ... in order; forgets the row it stood at. Also for a next execution.
  template <typename... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (set(++index, values), ...);
    return *this;
  }
  bool next();  // true: it stands at a row; false: there are no more
  void run() {  // for statements without rows
    while (next()) {
    }
  }

  // Of the row, columns from 0.
  int columns() const;
  std::string name(int column) const;
  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_real(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::optional<double> maybe_real(int column) const {
    return is_null(column) ? std::nullopt : std::optional(real(column));
  }

 private:
  void reset();
  void set(int index, std::int64_t value);
  void set(int index, int value) { set(index, std::int64_t(value)); }
  void set(int index, std::uint64_t value) { set(index, std::int64_t(value)); }
  void set(int index, bool value) { set(index, std::int64_t(value)); }
  void set(int index, double value);  // what is not finite becomes NULL
  void set(int index, std::string_view value);
  void set(int index, const std::string& value) { set(index, std::string_view(value)); }
  void set(int index, const char* value) { set(index, std::string_view(value)); }
  void set(int index, std::nullptr_t);
  template <typename Value>
  void set(int index, const std::optional<Value>& value) {
    if (value)
      set(index, *value);
    else
      set(index, nullptr);
  }

  const Database* database_;
  sqlite3_stmt* handle_;
};

// All or nothing: rolls back unless commit() was called.
class Transaction {
 public:
  explicit Transaction(Database& database);  // takes the file's write lock
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace convoy
