{{- define "detent.selector" -}}
app.kubernetes.io/name: detent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "detent.labels" -}}
{{ include "detent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "detent.scheme" -}}
{{ if .Values.tlsSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
{{- define "detent.tlsName" -}}
{{ .Values.tlsName | default (printf "%s.%s.svc" .Release.Name .Release.Namespace) }}
{{- end }}
