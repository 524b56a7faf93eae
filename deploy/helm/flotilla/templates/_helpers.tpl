{{/* Name of everything of this release: 40 characters, as pods append to it. */}}
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

{{/* What is behind the name of a pod. */}}
{{- define "flotilla.domain" -}}
{{- if .Values.advertiseDomain -}}
{{- .Values.advertiseDomain -}}
{{- else -}}
{{- printf "%s.%s.svc.%s" (include "flotilla.peers" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}
{{- end -}}

{{/* Hosts of the pods that join. */}}
{{- define "flotilla.others" -}}
{{- range $at := untilStep 1 (int .Values.replicas) 1 -}}
{{- if gt $at 1 }} {{ end -}}
{{- printf "%s-%d.%s.%s.svc.%s" (include "flotilla.name" $) $at (include "flotilla.peers" $) $.Release.Namespace $.Values.clusterDomain -}}
{{- end -}}
{{- end -}}

{{- define "flotilla.tickets" -}}
{{- .Values.tickets.secret | default (printf "%s-tickets" (include "flotilla.name" .)) -}}
{{- end -}}
