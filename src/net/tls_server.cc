#include "net/tls_server.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <utility>

#include "detent/check.h"

namespace detent::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// ---- a socket for OpenSSL: its own writes would raise SIGPIPE ----

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

/// `socket` must outlive it.
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

Error cannot_use(const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return Error{ErrorCode::invalid_argument,
               "use " + file + ": " + (reason == nullptr ? "it cannot be read" : reason), "tls"};
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
  // Of TLS 1.2 only what has forward secrecy and authenticated encryption (RFC 9325).
  DETENT_CHECK(SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file_.c_str()) != 1) {
    return cannot_use(certificate_file_);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file_.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return cannot_use(key_file_);
  }
  return context;
}

Result<void> TlsServer::reload() {
  ASSIGN_OR_RETURN(std::shared_ptr<SSL_CTX> fresh, read());
  const MutexLock lock(mutex_);
  context_ = std::move(fresh);
  return ok();
}

std::unique_ptr<TlsSession> TlsServer::accept(int socket) const {
  std::shared_ptr<SSL_CTX> context;
  {
    const MutexLock lock(mutex_);
    context = context_;
  }
  SSL* const ssl = SSL_new(context.get());  // which keeps the context
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsSession> session(new TlsSession(socket, ssl));
  BIO* const bio = new_socket_bio(&session->socket_);
  if (bio == nullptr) return nullptr;
  SSL_set_bio(ssl, bio, bio);
  return session;
}

}  // namespace detent::net
