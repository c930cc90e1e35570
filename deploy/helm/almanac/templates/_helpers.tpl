{{- define "almanac.name" -}}
{{- if contains "almanac" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-almanac" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of one part: a list of the root and the part. */}}
{{- define "almanac.selector" -}}
app.kubernetes.io/name: almanac
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "almanac.labels" -}}
{{ include "almanac.selector" . }}
{{- with index . 0 }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
{{- end -}}

{{/* The environment: secrets as files, then the other settings. */}}
{{- define "almanac.env" -}}
- name: ALMANAC_DATA_DIR
  value: /var/lib/almanac
{{- range $setting, $key := .Values.secrets.keys }}
- name: {{ $setting }}_FILE
  value: /run/secrets/almanac/{{ $key }}
{{- end }}
{{- range $setting, $value := .Values.settings }}
{{- if hasKey $.Values.secrets.keys $setting }}
{{- fail (printf "%s is in both settings and secrets.keys: remove one of them" $setting) }}
{{- end }}
- name: {{ $setting }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "almanac.image" -}}
{{- $root := index . 0 -}}
image: {{ printf "%s:%s" $root.Values.image.repository (index . 1 | default $root.Values.image.tag | default $root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
{{- end -}}

{{- define "almanac.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/almanac, readOnly: true}
  - {name: data, mountPath: /var/lib/almanac}
  - {name: tmp, mountPath: /tmp}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What every pod has: no token of the cluster, an unprivileged user, and the volumes. */}}
{{- define "almanac.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "almanac.volumes" -}}
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.secrets.name }}
      defaultMode: 0440
      items:
        {{- range $key := values .Values.secrets.keys | uniq | sortAlpha }}
        - {key: {{ $key }}, path: {{ $key }}}
        {{- end }}
  {{- include "almanac.scratch" . | nindent 2 }}
{{- end -}}

{{- define "almanac.scratch" -}}
- name: data
  emptyDir: {sizeLimit: 64Mi}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Two pods of a part should not share a node. */}}
{{- define "almanac.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "almanac.selector" . | nindent 8 }}
{{- end -}}
