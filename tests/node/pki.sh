# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster.sh sets `folder`, `api` and `node`.
#
# The certificates and kubeconfigs of the cluster, below $folder/pki. cluster.sh sources this file.

ca() {
  mkdir "$folder/pki"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 2 -subj "/CN=kube-unions-node" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$folder/pki/ca.key" -out "$folder/pki/ca.crt" 2>"$folder/logs/openssl.log"
}

# `certificate NAME SUBJECT [ALTERNATIVE NAMES]`: with alternative names it is a server's, without them a client's.
certificate() {
  local name=$1 subject=$2 use=clientAuth names=()
  if [ -n "${3:-}" ]; then
    use=serverAuth
    names=(-addext "subjectAltName=$3")
  fi
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 1 -subj "$subject" \
    -CA "$folder/pki/ca.crt" -CAkey "$folder/pki/ca.key" -addext basicConstraints=critical,CA:FALSE \
    -addext keyUsage=critical,digitalSignature -addext "extendedKeyUsage=$use" "${names[@]}" \
    -keyout "$folder/pki/$name.key" -out "$folder/pki/$name.crt" 2>"$folder/logs/openssl.log"
}

# `client NAME SUBJECT` makes a certificate and a kubeconfig with it.
client() {
  certificate "$1" "$2"
  cat >"$folder/$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: node, cluster: {server: "https://$api", certificate-authority: $folder/pki/ca.crt}}]
users: [{name: $1, user: {client-certificate: $folder/pki/$1.crt, client-key: $folder/pki/$1.key}}]
contexts: [{name: node, context: {cluster: node, user: $1}}]
current-context: node
EOF
}
