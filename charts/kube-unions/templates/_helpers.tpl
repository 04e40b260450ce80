{{- define "kube-unions.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for every suffix. */}}
{{- define "kube-unions.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kube-unions.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kube-unions.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. The same values always render the same labels. The chart's own labels take precedence over
`labels`, because selectors depend on them. */}}
{{- define "kube-unions.labels" -}}
{{- $own := include "kube-unions.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- toYaml (merge $own .Values.labels) -}}
{{- end -}}

{{- define "kube-unions.podLabels" -}}
{{- toYaml (merge (include "kube-unions.selectorLabels" . | fromYaml) .Values.podLabels) -}}
{{- end -}}

{{- define "kube-unions.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* `webhook`, `policies` or `off`. YAML parses `on` and `off` as booleans if they are not quoted. */}}
{{- define "kube-unions.enforcement" -}}
{{- $enforcement := toString .Values.enforcement -}}
{{- if has $enforcement (list "webhook" "on" "true") -}}
{{- if and .Values.enforcementByPolicies.remove (not .Values.registration.enabled) -}}
{{- fail "enforcementByPolicies.remove waits until the webhook is registered: set registration.enabled=true, or run `kube-unions unregister`" -}}
{{- end -}}
webhook
{{- else if ne $enforcement "policies" -}}off
{{- else if and (eq .Values.enforcementByPolicies.webhook "rest") (not .Values.registration.enabled) -}}
{{- fail "enforcement=policies registers the webhook for kinds that policies cannot express: set registration.enabled=true or enforcementByPolicies.webhook=never" -}}
{{- else if .Values.enforcementByPolicies.remove -}}
{{- fail "enforcement=policies keeps the policies that enforcementByPolicies.remove deletes: set one of the two" -}}
{{- else -}}policies
{{- end -}}
{{- end -}}

{{/* True if the pods write policies. */}}
{{- define "kube-unions.writesPolicies" -}}
{{- if or (eq (include "kube-unions.enforcement" .) "policies") .Values.enforcementByPolicies.remove -}}true{{- end -}}
{{- end -}}

{{/* A value as JSON in an argument of a container. The kubelet would expand `$(…)`. */}}
{{- define "kube-unions.jsonArgument" -}}
{{- toRawJson . | replace "$(" "$$(" -}}
{{- end -}}

{{/* The Secret with the certificate, in every certificate mode. */}}
{{- define "kube-unions.secretName" -}}
{{- if eq .Values.certificates.mode "provided" -}}
{{- required "certificates.provided.secretName is missing: with certificates.mode `provided`, name the Secret that holds tls.crt, tls.key and ca.crt" .Values.certificates.provided.secretName -}}
{{- else -}}
{{- printf "%s-tls" (include "kube-unions.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* The source of the clients' CA, as in a volume. Empty if there is none. */}}
{{- define "kube-unions.clientCA" -}}
{{- with .Values.clientCA -}}
{{- if and .configMapName .secretName -}}
{{- fail "clientCA names a ConfigMap and a Secret: set one of clientCA.configMapName and clientCA.secretName" -}}
{{- else if .configMapName -}}
configMap:
  name: {{ .configMapName }}
  defaultMode: 288
{{- else if .secretName -}}
secret:
  secretName: {{ .secretName }}
  defaultMode: 288
{{- else if .names -}}
{{- fail "clientCA.names are of no use without a CA: set clientCA.configMapName or clientCA.secretName" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* True if more than one pod is wanted. */}}
{{- define "kube-unions.severalReplicas" -}}
{{- if .Values.autoscaling.enabled -}}
{{- if gt (int .Values.autoscaling.minReplicas) 1 -}}true{{- end -}}
{{- else if gt (int .Values.replicas) 1 -}}true{{- end -}}
{{- end -}}

{{/* Credentials for the image, for every pod of this chart. */}}
{{- define "kube-unions.pullSecrets" -}}
{{- if hasKey .Values "imagePullSecrets" -}}
{{- fail "imagePullSecrets is not a value of this chart: set image.pullSecrets" -}}
{{- end -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Fails if the ports cannot be those of the pods. */}}
{{- define "kube-unions.checkPorts" -}}
{{- if eq (int .Values.webhook.port) (int .Values.ops.port) -}}
{{- fail (printf "webhook.port and ops.port are both %d: change one of them" (int .Values.ops.port)) -}}
{{- end -}}
{{- if .Values.hostNetwork -}}
{{- range $value, $port := dict "webhook.port" .Values.webhook.port "ops.port" .Values.ops.port -}}
{{- if has (int $port) (list 10248 10249 10250 10255 10256 10257 10259) -}}
{{- fail (printf "%s=%d is a port of Kubernetes itself on every node: with hostNetwork, set another one, for example webhook.port=10260" $value (int $port)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.networkPolicy.enabled -}}
{{- fail "networkPolicy.enabled has no effect on pods in the network of their nodes: set one of hostNetwork and networkPolicy.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The security context of every pod of this chart. */}}
{{- define "kube-unions.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "kube-unions.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Scheduling of every pod of this chart. */}}
{{- define "kube-unions.scheduling" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The presets that are chosen: of each value its file below `presets` and its mode. */}}
{{- define "kube-unions.presets" -}}
{{- $files := dict -}}
{{- range $name, $value := .Values.presets -}}
{{- if kindIs "map" $value -}}
{{- range $project, $mode := $value -}}
{{- if ne $mode "none" -}}
{{- $_ := set $files (printf "%s.%s" $name $project) (list (printf "%s/%s" $name (kebabcase $project)) $mode) -}}
{{- end -}}
{{- end -}}
{{- else if ne $value "none" -}}
{{- $_ := set $files $name (list (kebabcase $name) $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end -}}

{{/* The resources of the chosen presets by group. Their names follow from the kinds, as API servers and generators make them. */}}
{{- define "kube-unions.presetResources" -}}
{{- $groups := dict -}}
{{- range $chosen := include "kube-unions.presets" . | fromYaml -}}
{{- range $document := splitList "\n---\n" ($.Files.Get (printf "presets/%s.yaml" (index $chosen 0))) -}}
{{- $preset := fromYaml $document -}}
{{- if $preset.kind -}}
{{- $kind := lower $preset.spec.target.kind -}}
{{- $plural := printf "%ss" $kind -}}
{{- if regexMatch "(s|x|ch|sh)$" $kind -}}
{{- $plural = printf "%ses" $kind -}}
{{- else if regexMatch "[^aeiou]y$" $kind -}}
{{- $plural = printf "%sies" (trimSuffix "y" $kind) -}}
{{- end -}}
{{- $group := $preset.spec.target.group -}}
{{- $_ := set $groups $group (append (default list (get $groups $group)) $plural | uniq | sortAlpha) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}
