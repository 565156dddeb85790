{{/* The name of everything in this release. */}}
{{- define "operator.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $chart .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $chart | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "operator.name" .) }}
{{- else if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if or .Values.rbac.create .Values.protectRecords -}}
{{- fail "serviceAccount.create is false and serviceAccount.name is empty: the operator's rights would go to every pod that uses the ServiceAccount `default`; name an account of its own" -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
{{ include "operator.commonLabels" . }}
{{- end -}}

{{- define "operator.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "operator.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{/* Where pods of this release may run, and by whose leave they get their images. */}}
{{- define "operator.placement" -}}
{{- with concat (.Values.imagePullSecrets | default list) ((.Values.global).imagePullSecrets | default list) }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What the operator may do with what it serves: of users' objects it writes only finalizers (a patch) and the
status; ReassignmentRecords are its own; the PartitionReassignments of a ReassignmentPlan, and the ReassignmentPlans of a
BrokerDecommission or a ReassignmentPolicy, it makes and deletes; what is past its ttlSecondsAfterFinished it deletes; a
ConfigMap is made when the brake is pulled. */}}
{{- define "operator.rules" -}}
- apiGroups: [kafka.reassign.dev]
  resources: [kafkaclusters, partitionreassignments, reassignmentplans, brokerdecommissions]
  verbs: [get, list, watch, patch]
- apiGroups: [kafka.reassign.dev]
  resources: [reassignmentpolicies]
  verbs: [get, list, watch]
- apiGroups: [kafka.reassign.dev]
  resources: [partitionreassignments, reassignmentplans]
  verbs: [create, delete]
- apiGroups: [kafka.reassign.dev]
  resources:
  - kafkaclusters/status
  - partitionreassignments/status
  - reassignmentplans/status
  - brokerdecommissions/status
  - reassignmentpolicies/status
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
