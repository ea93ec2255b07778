/**
 * How Flux, Argo's health checks and `kstatus` read a custom resource, written down from the documentation of kstatus
 * (kubernetes-sigs/cli-utils, pkg/kstatus/README.md): deletion, then the generation, then Reconciling and Stalled, then Ready.
 */

export type Kstatus = 'Terminating' | 'InProgress' | 'Failed' | 'Current'

/** As much of an object as is looked at. */
export interface Judged {
  readonly metadata: { readonly generation?: number | undefined; readonly deletionTimestamp?: string | undefined }
  readonly status?:
    | {
        readonly observedGeneration?: number | undefined
        readonly conditions?: readonly { readonly type: string; readonly status: string }[] | undefined
      }
    | undefined
}

/** Whoever says nothing is taken for Current: that is the rule, and the trap. */
export const kstatusOf = ({ metadata, status }: Judged): Kstatus => {
  if (metadata.deletionTimestamp !== undefined) return 'Terminating'
  const seen = status?.observedGeneration
  if (seen !== undefined && metadata.generation !== undefined && seen !== metadata.generation) return 'InProgress'
  for (const { type, status: said } of status?.conditions ?? []) {
    if (type === 'Reconciling' && said === 'True') return 'InProgress'
    if (type === 'Stalled' && said === 'True') return 'Failed'
  }
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.status === 'True' ? 'Current' : 'InProgress'
}
