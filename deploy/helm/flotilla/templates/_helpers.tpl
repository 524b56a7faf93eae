{{/* Name of all resources of this release; at most 40 characters, because the names of pods add a suffix. */}}
{{- define "flotilla.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "flotilla.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "flotilla.labels" -}}
{{ include "flotilla.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "flotilla.peers" -}}
{{ include "flotilla.name" . }}-peers
{{- end -}}

{{/* Domain that follows the name of a pod. */}}
{{- define "flotilla.domain" -}}
{{- if .Values.advertiseDomain -}}
{{- .Values.advertiseDomain -}}
{{- else -}}
{{- printf "%s.%s.svc.%s" (include "flotilla.peers" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}
{{- end -}}

{{/* Host names of all pods except pod 0, separated by spaces. */}}
{{- define "flotilla.others" -}}
{{- range $at := untilStep 1 (int .Values.replicas) 1 -}}
{{- if gt $at 1 }} {{ end -}}
{{- printf "%s-%d.%s.%s.svc.%s" (include "flotilla.name" $) $at (include "flotilla.peers" $) $.Release.Namespace $.Values.clusterDomain -}}
{{- end -}}
{{- end -}}

{{- define "flotilla.tickets" -}}
{{- .Values.tickets.secret | default (printf "%s-tickets" (include "flotilla.name" .)) -}}
{{- end -}}

{{/* Names of the client Service within this Kubernetes cluster, and the names in the value `names`, separated by commas. */}}
{{- define "flotilla.names" -}}
{{- $name := include "flotilla.name" . -}}
{{- $spaced := printf "%s.%s" $name .Release.Namespace -}}
{{- concat (list $name $spaced (printf "%s.svc" $spaced) (printf "%s.svc.%s" $spaced .Values.clusterDomain)) .Values.names | uniq | join "," -}}
{{- end -}}

{{/* Adds a labelSelector to each topology spread constraint without one. Parameters: `constraints`, a list; `selector`, the labels as YAML. */}}
{{- define "flotilla.spread" -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (fromYaml .selector)) -}}
{{- range .constraints }}
- {{ toYaml (ternary . (merge (deepCopy .) $selector) (hasKey . "labelSelector")) | nindent 2 | trim }}
{{- end -}}
{{- end -}}

{{- define "flotilla.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "flotilla.router" -}}
{{ include "flotilla.name" . }}-router
{{- end -}}

{{- define "flotilla.routerSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: router
{{- end -}}

{{- define "flotilla.routerLabels" -}}
{{ include "flotilla.routerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "flotilla.tokens" -}}
{{- .Values.routers.tokensSecret | default (printf "%s-router-tokens" (include "flotilla.name" .)) -}}
{{- end -}}
