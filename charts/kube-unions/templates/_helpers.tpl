{{- define "kube-unions.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for every suffix below. */}}
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

{{/* Nothing in here changes from one rendering of the same values to the next. What the chart says wins over what was given:
selectors depend on it. */}}
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

{{/* `on` or `off`. Without quotes YAML makes booleans of them. */}}
{{- define "kube-unions.enforcement" -}}
{{- if has (toString .Values.enforcement) (list "on" "true") -}}on{{- else -}}off{{- end -}}
{{- end -}}

{{/* A value as JSON in an argument of a container, where the kubelet would replace `$(…)`. */}}
{{- define "kube-unions.jsonArgument" -}}
{{- toRawJson . | replace "$(" "$$(" -}}
{{- end -}}

{{/* The Secret with the certificate, whoever writes it. */}}
{{- define "kube-unions.secretName" -}}
{{- if eq .Values.certificates.mode "provided" -}}
{{- required "certificates.provided.secretName is missing: with certificates.mode `provided`, name the Secret that holds tls.crt, tls.key and ca.crt" .Values.certificates.provided.secretName -}}
{{- else -}}
{{- printf "%s-tls" (include "kube-unions.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* Where the CA of clients comes from, as a volume has it. Nothing where there is none. */}}
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

{{/* Whether more than one pod is meant to run. */}}
{{- define "kube-unions.severalReplicas" -}}
{{- if .Values.autoscaling.enabled -}}
{{- if gt (int .Values.autoscaling.minReplicas) 1 -}}true{{- end -}}
{{- else if gt (int .Values.replicas) 1 -}}true{{- end -}}
{{- end -}}

{{/* What every pod of this chart is restricted to. */}}
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

{{/* Where a pod of this chart may run. */}}
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
