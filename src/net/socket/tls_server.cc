#include "net/socket/tls_server.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/read_file.h"
#include "base/wall_time.h"
#include "detent/check.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// ---- a socket for OpenSSL, because its own socket writes would raise SIGPIPE ----

int socket_of(BIO* bio) { return *static_cast<const int*>(BIO_get_data(bio)); }

int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_socket(BIO* bio, char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(socket_of(bio), buffer, static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

// NOLINTNEXTLINE(google-runtime-int): OpenSSL's signature
long control_socket(BIO* /*bio*/, int command, long /*number*/, void* /*data*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/// `socket` must outlive the BIO.
BIO* new_socket_bio(int* socket) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "socket");
    DETENT_CHECK(made != nullptr);
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, socket);
  BIO_set_init(bio, 1);
  return bio;
}

// The options that name the files.
constexpr std::string_view kCertOption = "--tls-cert";
constexpr std::string_view kKeyOption = "--tls-key";

Error cannot_use(std::string_view option, const std::string& file, const std::string& reason) {
  return Error{ErrorCode::invalid_argument, std::string(option) + " " + file + ": " + reason,
               "tls"};
}

/// The first error of OpenSSL is the cause. Later errors only name the function that failed.
Error not_pem(std::string_view option, const std::string& file, std::string content) {
  const char* const cause = ERR_reason_error_string(ERR_peek_error());
  if (cause != nullptr) content.append(" (OpenSSL: ").append(cause).append(")");
  return cannot_use(option, file, "must be a PEM file with " + content);
}

/// Reports a missing or empty file, because the messages of OpenSSL do not say so.
Result<void> check_file(std::string_view option, const std::string& file) {
  constexpr std::size_t kLargestFile = std::size_t{1} << 20;
  const Result<std::string> text = read_file(file, kLargestFile);
  if (!text) return cannot_use(option, file, text.error().message);
  if (text->empty()) return cannot_use(option, file, "the file is empty");
  return ok();
}

// ---- certificates ----

std::string text_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

/// Returns "" if the bytes are not an IP address.
std::string ip_text_of(const ASN1_OCTET_STRING* bytes) {
  const std::string raw = text_of(bytes);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = raw.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (family == AF_INET6 && raw.size() != sizeof(in6_addr)) return "";
  return ::inet_ntop(family, raw.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_IPADD) names.push_back(ip_text_of(name->d.iPAddress));
  }
  return names;
}

/// Returns whether the certificate is valid for `host`.
bool is_for(X509* certificate, const std::string& host) {
  if (X509_check_host(certificate, host.c_str(), host.size(), 0, nullptr) == 1) return true;
  if (X509_check_ip_asc(certificate, host.c_str(), 0) == 1) return true;
  const std::vector<std::string> names = names_of(certificate);
  return std::find(names.begin(), names.end(), host) != names.end();
}

std::string shown(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unreadable time";
  return format_rfc3339(WallTime{std::chrono::seconds{::timegm(&parts)}});
}

void add_time_faults(const X509* certificate, const std::string& which, WallTime now,
                     std::vector<std::string>& faults) {
  std::time_t at = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  if (X509_cmp_time(begin, &at) > 0)
    faults.push_back(which + " is not valid before " + shown(begin));
  if (X509_cmp_time(end, &at) < 0) faults.push_back(which + " expired on " + shown(end));
}

}  // namespace

void TlsSession::Free::operator()(SSL* ssl) const noexcept { SSL_free(ssl); }

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const int done = SSL_accept(ssl_.get());
  if (done == 1) return Step::done;
  switch (SSL_get_error(ssl_.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return Step::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return Step::wants_write;
    default:
      return Step::failed;
  }
}

std::size_t TlsSession::result(int returned, std::size_t size, error_code& ec) {
  ec = {};
  if (returned > 0) return size;
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      ec = asio::error::would_block;
      break;
    case SSL_ERROR_ZERO_RETURN:
      ec = asio::error::eof;
      break;
    default:
      ec = asio::error::connection_reset;
      break;
  }
  return 0;
}

std::size_t TlsSession::read(std::span<char> buffer, error_code& ec) {
  ERR_clear_error();
  std::size_t size = 0;
  const int returned = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &size);
  return result(returned, size, ec);
}

std::size_t TlsSession::peek(std::span<char> buffer, error_code& ec) {
  ERR_clear_error();
  std::size_t size = 0;
  const int returned = SSL_peek_ex(ssl_.get(), buffer.data(), buffer.size(), &size);
  return result(returned, size, ec);
}

std::size_t TlsSession::write(std::string_view bytes, error_code& ec) {
  ERR_clear_error();
  std::size_t size = 0;
  const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &size);
  return result(returned, size, ec);
}

bool TlsSession::has_pending() const { return SSL_pending(ssl_.get()) > 0; }

void TlsSession::end() {
  ERR_clear_error();
  // Ignores the result: the connection is closed, whether the client has gone or not.
  (void)SSL_shutdown(ssl_.get());
}

Result<std::shared_ptr<TlsServer>> TlsServer::load(std::string certificate_file,
                                                   std::string key_file) {
  std::shared_ptr<TlsServer> server(
      new TlsServer(std::move(certificate_file), std::move(key_file)));
  TRY(server->reload());
  return server;
}

Result<std::shared_ptr<SSL_CTX>> TlsServer::read() const {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Error{ErrorCode::unavailable, "no memory for TLS", ""};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Of TLS 1.2, allow only forward secrecy with authenticated encryption (RFC 9325).
  DETENT_CHECK(SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
  TRY(check_file(kCertOption, certificate_file_));
  TRY(check_file(kKeyOption, key_file_));
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file_.c_str()) != 1) {
    return not_pem(kCertOption, certificate_file_,
                   "the certificate chain, server certificate first");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file_.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return not_pem(kKeyOption, key_file_, "the private key of the certificate");
  }
  return context;
}

Result<void> TlsServer::reload() {
  ASSIGN_OR_RETURN(std::shared_ptr<SSL_CTX> fresh, read());
  const MutexLock lock(mutex_);
  context_ = std::move(fresh);
  return ok();
}

std::shared_ptr<SSL_CTX> TlsServer::in_force() const {
  const MutexLock lock(mutex_);
  return context_;
}

std::vector<std::string> TlsServer::names() const {
  return names_of(SSL_CTX_get0_certificate(in_force().get()));
}

std::vector<std::string> TlsServer::faults(WallTime now,
                                           const std::vector<std::string>& hosts) const {
  const std::shared_ptr<SSL_CTX> context = in_force();
  X509* const certificate = SSL_CTX_get0_certificate(context.get());
  std::vector<std::string> faults;
  add_time_faults(certificate, "the certificate", now, faults);
  STACK_OF(X509)* signers = nullptr;
  SSL_CTX_get0_chain_certs(context.get(), &signers);
  for (int i = 0; signers != nullptr && i < sk_X509_num(signers); ++i) {
    add_time_faults(sk_X509_value(signers, i), "a certificate that signed it", now, faults);
  }
  for (const std::string& host : hosts) {
    if (!is_for(certificate, host)) faults.push_back("the certificate is not for " + host);
  }
  return faults;
}

std::unique_ptr<TlsSession> TlsServer::accept(int socket) const {
  const std::shared_ptr<SSL_CTX> context = in_force();
  SSL* const ssl = SSL_new(context.get());  // it also owns the context
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsSession> session(new TlsSession(socket, ssl));
  BIO* const bio = new_socket_bio(&session->socket_);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(ssl, bio, bio);
  return session;
}

}  // namespace detent::net
