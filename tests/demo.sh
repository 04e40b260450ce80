#!/usr/bin/env bash
# Starts the webhook with the samples and without a cluster, sends it one review, shows the answer, and stops the webhook.
# Fails if the answer is not the expected patch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=${KUBE_UNIONS_WEBHOOK_BIN:-target/release/kube-unions-webhook}
folder=$(mktemp -d)
webhook=
end() {
  [ -z "$webhook" ] || { kill "$webhook" 2>/dev/null && wait "$webhook"; } || true
  rm -rf "$folder"
}
trap end EXIT

"$program" serve --from manifests/samples --bind 127.0.0.1:0 --ops-bind 127.0.0.1:0 --shutdown-delay 0s --log-format json \
  --tls-self-signed --tls-ca-file "$folder/ca.crt" 2>"$folder/log" &
webhook=$!

# With port 0 the system chooses a port; the log names it.
address() { sed -n "s/.*\"message\":\"listening\".*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/log"; }
deadline=$((SECONDS + 30))
until [ -n "$(address ops)" ] && curl -fsS -o /dev/null "http://$(address ops)/readyz" 2>/dev/null; do
  if ! kill -0 "$webhook" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
    echo "demo: the webhook did not become ready; its log:" >&2
    cat "$folder/log" >&2
    exit 1
  fi
  read -r -t 0.1 <> <(:) || true
done

echo "The review changes strategy.type from RollingUpdate to Recreate, and still has rollingUpdate:"
grep -E '"(object|oldObject|spec)"' manifests/samples/review.json
echo
echo "The webhook answers:"
answer=$(curl -fsS --cacert "$folder/ca.crt" -H 'Content-Type: application/json' \
  --data-binary @manifests/samples/review.json "https://$(address webhook)/mutate")
echo "$answer"
echo
echo "Its patch, decoded:"
patch=$(sed -n 's/.*"patch":"\([^"]*\)".*/\1/p' <<<"$answer" | base64 -d)
echo "$patch"
[ "$patch" = '[{"op":"remove","path":"/spec/strategy/rollingUpdate"}]' ]
