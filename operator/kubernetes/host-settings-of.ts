import { ENVIRONMENT_KINDS, type EnvironmentKind } from '../../lib/model/environment.ts'
import type { EnvironmentsSettings } from '../config/environments-settings.ts'
import { DEFAULT_HOST_SETTINGS, type KubernetesHostSettings, type Placement } from '../host/kubernetes/host-settings.ts'

/** What an admin decided, and what almost everybody wants where he said nothing. */
export const hostSettingsOf = (operatorNamespace: string, given: EnvironmentsSettings): KubernetesHostSettings => {
  const preset = DEFAULT_HOST_SETTINGS
  const each = <T>(of: (kind: EnvironmentKind) => T): Record<EnvironmentKind, T> =>
    Object.fromEntries(ENVIRONMENT_KINDS.map(kind => [kind, of(kind)])) as Record<EnvironmentKind, T>
  return {
    operatorNamespace,
    managedBy: preset.managedBy,
    image: given.image ?? preset.image,
    imagePullPolicy: given.imagePullPolicy ?? preset.imagePullPolicy,
    imagePullSecrets: given.imagePullSecrets ?? preset.imagePullSecrets,
    storageClass: given.storageClass === '' ? undefined : (given.storageClass ?? preset.storageClass),
    requestShare: {
      cpu: given.requestShare?.cpu ?? preset.requestShare.cpu,
      memory: given.requestShare?.memory ?? preset.requestShare.memory,
    },
    retentionDays: given.retentionDays ?? preset.retentionDays,
    graceSeconds: each(kind => given[kind]?.graceSeconds ?? preset.graceSeconds[kind]),
    // The shape is the cluster's to judge: it knows its versions of it.
    exposure: each(
      kind => (given[kind]?.exposure ?? preset.exposure[kind]) as KubernetesHostSettings['exposure'][typeof kind],
    ),
    placement: each(kind => placementOf(given[kind])),
  }
}

/** Without what the chart leaves empty. */
const placementOf = (given: EnvironmentsSettings[EnvironmentKind] = {}): Placement => {
  const { graceSeconds: _, exposure: __, ...placement } = given
  return Object.fromEntries(
    Object.entries(placement).filter(([, value]) => value !== '' && Object.keys(value ?? {}).length > 0),
  )
}
