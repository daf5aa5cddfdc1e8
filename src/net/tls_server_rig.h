// A server over TLS with a certificate of its own, for tests of who trusts whom. Tests only.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "detent/check.h"

namespace detent::net {

/// What a certificate says. Seconds are from now.
struct CertificateOf {
  std::string names = "DNS:localhost,IP:127.0.0.1";
  long valid_from = -3600;
  long valid_to = 3600;
};

/// A certificate that signs itself, and its key, in files NAME.crt and NAME.key.
inline void make_certificate(const std::string& path, const CertificateOf& of) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), of.valid_from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), of.valid_to);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const std::string subject = "test";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(subject.data()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, of.names.c_str()),
      X509_EXTENSION_free);
  X509_add_ext(certificate.get(), names.get(), -1);
  DETENT_CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  std::FILE* file = std::fopen((path + ".crt").c_str(), "w");
  PEM_write_X509(file, certificate.get());
  std::fclose(file);
  file = std::fopen((path + ".key").c_str(), "w");
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
}

/// Answers each request with `200` and its own target as body; one connection at a time.
class TlsServer {
 public:
  /// `certificate` as make_certificate() made it.
  explicit TlsServer(const std::string& certificate) {
    tls_.use_certificate_file(certificate + ".crt", boost::asio::ssl::context::pem);
    tls_.use_private_key_file(certificate + ".key", boost::asio::ssl::context::pem);
    thread_ = std::thread([this] { serve(); });
  }
  ~TlsServer() {
    is_stopping_ = true;
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket waker(io);
    boost::system::error_code ignored;
    waker.connect(acceptor_.local_endpoint(), ignored);
    waker.close(ignored);
    thread_.join();
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }

 private:
  void serve() {
    while (!is_stopping_) {
      boost::system::error_code ec;
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(acceptor_.accept(), tls_);
      stream.handshake(boost::asio::ssl::stream_base::server, ec);
      std::string request;
      std::array<char, 4096> part{};
      while (!ec && request.find("\r\n\r\n") == std::string::npos) {
        request.append(part.data(), stream.read_some(boost::asio::buffer(part), ec));
      }
      if (ec) continue;
      const std::string target = request.substr(5, request.find(' ', 5) - 5);
      boost::asio::write(stream, boost::asio::buffer("HTTP/1.1 200 OK\r\n\r\n" + target), ec);
    }
  }

  boost::asio::io_context io_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  boost::asio::ip::tcp::acceptor acceptor_{
      io_, {boost::asio::ip::make_address("127.0.0.1"), boost::asio::ip::port_type{0}}};
  std::atomic<bool> is_stopping_{false};  // set by the test, read by the thread
  std::thread thread_;
};

}  // namespace detent::net
