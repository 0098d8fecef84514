#include "measure/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <system_error>
#include <utility>

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience_s = 5;

// The path as SQLite's URI, in which ?, # and % would mean something.
std::string uri_of(const fs::path& path, const char* parameters) {
  std::string uri = "file:";
  for (const char letter : fs::absolute(path).string())
    if (letter == '?' || letter == '#' || letter == '%')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(letter));
    else
      uri += letter;
  return uri + parameters;
}

[[noreturn]] void throw_what(int code, const fs::path& path, std::string_view doing,
                             const std::string& text) {
  const std::string name = path.string();
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw StoreBusy(
          "{}: another process has locked the run store: end it, or choose another "
          "--store",
          name);
    case SQLITE_READONLY:
      throw DataError(
          "{}: the run store is read-only: make it and its folder writable, or choose "
          "another --store",
          name);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw DataError("{}: no run store, or a damaged one ({}): choose another --store", name,
                      text);
    case SQLITE_FULL:
      throw DataError("{}: the disk is full while {}", name, doing);
    default:
      throw DataError("{}: {} failed: {}", name, doing, text);
  }
}

int open_handle(const fs::path& path, Access access, const char* parameters, sqlite3** handle) {
  const int flags = access == Access::read    ? SQLITE_OPEN_READONLY
                    : access == Access::write ? SQLITE_OPEN_READWRITE
                                              : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(uri_of(path, parameters).c_str(), handle,
                                   flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return code;
  sqlite3_busy_timeout(*handle, int(1000 * kPatience_s));
  // The file is looked at only now.
  return sqlite3_exec(*handle, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
}

}  // namespace

Database::Database(const fs::path& path, Access access) : path_(path) {
  std::error_code ignored;
  if (access != Access::create && !fs::exists(path, ignored))
    throw DataError("{}: there is no run store yet: convoy train makes one (--store FILE)",
                    path.string());
  if (fs::is_directory(path, ignored))
    throw DataError("{}: a folder, not a run store: choose another --store", path.string());
  int code = open_handle(path, access, "", &handle_);
  // Beside a store in a folder that may not be written SQLite cannot make the index of its log, or
  // may not use the one that is there. It may be read as it stands in the file.
  const bool unusable_log = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
  if (unusable_log && access == Access::read && ::access(path.c_str(), R_OK) == 0) {
    sqlite3_close(std::exchange(handle_, nullptr));
    code = open_handle(path, access, "?immutable=1", &handle_);
  }
  if (code == SQLITE_OK) {
    if (access == Access::read || sqlite3_db_readonly(handle_, "main") == 0) return;
    code = SQLITE_READONLY;
  }
  const std::string text = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  sqlite3_close(std::exchange(handle_, nullptr));
  if ((code & 0xff) == SQLITE_CANTOPEN)
    throw DataError("{}: cannot open the run store: check that the file and its folder may be {}",
                    path.string(), access == Access::read ? "read" : "written");
  throw_what(code, path, "opening", text);
}

Database::~Database() { sqlite3_close_v2(handle_); }

Database::Database(Database&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, nullptr)) {}

void Database::set_patience_s(double seconds) {
  sqlite3_busy_timeout(handle_, int(1000 * seconds));
}

void Database::write_ahead() {
  constexpr int kPause_ms = 2;
  int code = SQLITE_BUSY;
  for (int waited_ms = 0; (code & 0xff) == SQLITE_BUSY && waited_ms < 1000 * kPatience_s;
       waited_ms += kPause_ms) {
    if (waited_ms > 0) sqlite3_sleep(kPause_ms);
    code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
  }
  if (code != SQLITE_OK) fail("beginning a write-ahead log");
}

void Database::fail(std::string_view doing) const {
  throw_what(sqlite3_extended_errcode(handle_), path_, doing, sqlite3_errmsg(handle_));
}

void Database::run(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(sql.substr(0, 40));
}

Statement Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.data(), int(sql.size()), &statement, nullptr) != SQLITE_OK)
    fail(sql);
  return {*this, statement};
}

std::int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Database::changes() const { return sqlite3_changes64(handle_); }

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), handle_(std::exchange(other.handle_, nullptr)) {}

void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_);  // a statement that is left at its end would keep the file's lock
    return false;
  }
  const std::string text = sqlite3_errmsg(sqlite3_db_handle(handle_));
  const int why = sqlite3_extended_errcode(sqlite3_db_handle(handle_));
  sqlite3_reset(handle_);
  throw_what(why, database_->path(), sqlite3_sql(handle_), text);
}

void Statement::set(int index, std::int64_t value) { sqlite3_bind_int64(handle_, index, value); }

void Statement::set(int index, double value) {
  if (std::isfinite(value))
    sqlite3_bind_double(handle_, index, value);
  else
    sqlite3_bind_null(handle_, index);
}

void Statement::set(int index, std::string_view value) {
  sqlite3_bind_text64(handle_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::set(int index, std::nullptr_t) { sqlite3_bind_null(handle_, index); }

int Statement::columns() const { return sqlite3_column_count(handle_); }

std::string Statement::name(int column) const { return sqlite3_column_name(handle_, column); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

bool Statement::is_integer(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_INTEGER;
}

bool Statement::is_real(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_FLOAT;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }

std::string Statement::text(int column) const {
  const unsigned char* letters = sqlite3_column_text(handle_, column);
  const int bytes = sqlite3_column_bytes(handle_, column);
  return letters ? std::string(reinterpret_cast<const char*>(letters), std::size_t(bytes))
                 : std::string();
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const DataError&) {  // SQLite has rolled back already, or the file is gone
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace convoy
