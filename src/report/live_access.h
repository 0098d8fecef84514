// Who may talk to the live page.
#pragma once

#include <string>
#include <string_view>

namespace convoy {

// 128 random bits as text.
std::string random_token();

// What can stand in an address and in a cookie as it is, and is not guessed at once.
bool is_token(std::string_view text);

// Takes the same time wherever they differ.
bool equal_secrets(std::string_view one, std::string_view other);

// An address that only this machine reaches: "127.0.0.1", "::1", "localhost".
bool is_loopback(std::string_view host);

// The value of a cookie in a Cookie header; empty: it is not there.
std::string cookie(std::string_view header, std::string_view name);

// Whether a Host header names a loopback address. A page from elsewhere whose name was pointed at
// this machine (DNS rebinding) has its own name there.
bool is_loopback_header(std::string_view host_header);

}  // namespace convoy
