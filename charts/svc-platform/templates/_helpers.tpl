{{/* Labels of everything here; takes a dict of root and component. */}}
{{- define "svc.labels" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/part-of: svc
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Labels by which pods are selected; they never change. */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "svc.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{- define "svc.masterKeySecret" -}}
{{ default "svc-master-key" .Values.masterKey.secretName }}
{{- end }}

{{/* The Secret with the URLs of the control-plane database, and its two keys. */}}
{{- define "svc.databaseSecret" -}}
{{ eq .Values.database.mode "embedded" | ternary "svc-database" .Values.database.external.secretName }}
{{- end }}
{{- define "svc.databaseUrlKey" -}}
{{ eq .Values.database.mode "embedded" | ternary "url" .Values.database.external.urlKey }}
{{- end }}
{{- define "svc.databaseOwnerUrlKey" -}}
{{ eq .Values.database.mode "embedded" | ternary "owner-url" .Values.database.external.ownerUrlKey }}
{{- end }}

{{/* The Secret with the authorities that sign the database's certificate, and its key; empty: those that everybody trusts. */}}
{{- define "svc.databaseCaSecret" -}}
{{ eq .Values.database.mode "embedded" | ternary "svc-database-tls" .Values.database.external.secretName }}
{{- end }}
{{- define "svc.databaseCaKey" -}}
{{ eq .Values.database.mode "embedded" | ternary "ca.crt" .Values.database.external.caKey }}
{{- end }}

{{/* What every pod of the control plane is: restricted Pod Security, where and how important. Takes root and of, the program's values. */}}
{{- define "svc.pod" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
enableServiceLinks: false
{{- with .root.Values.priorityClass.name }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .uid }}
  runAsGroup: {{ .uid }}
  fsGroup: {{ .uid }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Replicas on different nodes and zones, where there are some. */}}
{{- define "svc.spread" -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "svc.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{- define "svc.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{/* Settings as the user wrote them, sorted by name. */}}
{{- define "svc.settings" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ kindIs "float64" $value | ternary (printf "%.0f" $value) (toString $value) | quote }}
{{- end }}
{{- end }}

{{/* Settings that lie in Secrets of the user's. */}}
{{- define "svc.secretSettings" -}}
{{- range $name, $from := . }}
- name: {{ $name }}
  valueFrom: { secretKeyRef: { name: {{ $from.secretName }}, key: {{ $from.key | quote }} } }
{{- end }}
{{- end }}

{{/* Settings that name files of the user's: where they are mounted, and the volume of them. */}}
{{- define "svc.fileSettings" -}}
{{- range $name, $from := . }}
- { name: {{ $name }}, value: /etc/svc/files/{{ $name }} }
{{- end }}
{{- end }}
{{- define "svc.fileSources" -}}
{{- range $name, $from := . }}
{{- if $from.configMapName }}
- configMap: { name: {{ $from.configMapName }}, items: [{ key: {{ $from.key | quote }}, path: {{ $name }} }] }
{{- else }}
- secret: { name: {{ $from.secretName }}, items: [{ key: {{ $from.key | quote }}, path: {{ $name }} }] }
{{- end }}
{{- end }}
{{- end }}

{{/* The base64 of a key of a Secret that is there, else of what was made; takes root, secret, key and made. */}}
{{- define "svc.kept" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .secret -}}
{{- if and $there (hasKey (default dict $there.data) .key) -}}
{{ index $there.data .key }}
{{- else -}}
{{ b64enc .made }}
{{- end -}}
{{- end }}

{{/* What the pod of helm test needs: made for it in the order of weights, and gone when it succeeded. */}}
{{- define "svc.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
