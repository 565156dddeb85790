{{/* The name of everything in this release. */}}
{{- define "operator.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}

{{/* What the operator may do with what it serves: of users' objects it writes only finalizers (a patch) and the
status; ReassignmentRecords are its own; the PartitionReassignments of a ReassignmentPlan it makes and deletes; what is
past its ttlSecondsAfterFinished it deletes; a
ConfigMap is made when the brake is pulled. */}}
{{- define "operator.rules" -}}
- apiGroups: [kafka.reassign.dev]
  resources: [kafkaclusters, partitionreassignments, reassignmentplans]
  verbs: [get, list, watch, patch]
- apiGroups: [kafka.reassign.dev]
  resources: [partitionreassignments]
  verbs: [create]
- apiGroups: [kafka.reassign.dev]
  resources: [partitionreassignments, reassignmentplans]
  verbs: [delete]
- apiGroups: [kafka.reassign.dev]
  resources: [kafkaclusters/status, partitionreassignments/status, reassignmentplans/status]
  verbs: [patch]
- apiGroups: [kafka.reassign.dev]
  resources: [reassignmentrecords]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
