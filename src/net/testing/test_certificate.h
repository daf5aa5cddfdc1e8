// Certificates for tests. Tests only.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "detent/check.h"

namespace detent::net {

/// The contents of a certificate. Times are seconds from now.
struct CertificateOf {
  std::string names = "DNS:localhost,IP:127.0.0.1";
  std::int64_t valid_from = -3600;
  std::int64_t valid_to = 3600;
};

/// Writes a fresh key, and a certificate of it that signs itself.
inline void write_certificate(const std::string& certificate_file, const std::string& key_file,
                              const CertificateOf& of) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), of.valid_from);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), of.valid_to);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  const unsigned char kName[] = "test";
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, kName, -1, -1, 0);
  X509_set_issuer_name(made.get(), subject);
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, of.names.c_str()),
      X509_EXTENSION_free);
  X509_add_ext(made.get(), extension.get(), -1);
  DETENT_CHECK(X509_sign(made.get(), key.get(), EVP_sha256()) > 0);
  const auto write = [](const std::string& path, auto put) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                               &std::fclose);
    DETENT_CHECK(file != nullptr);
    put(file.get());
  };
  write(certificate_file, [&](std::FILE* file) { PEM_write_X509(file, made.get()); });
  write(key_file, [&](std::FILE* file) {
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace detent::net
