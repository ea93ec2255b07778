/** Somebody who has kubectl and a project, and nothing else of ours. */
import { API_VERSION, LABELS, projectNamespace } from '../../crds/metadata.ts'
import { environmentName } from '../../lib/model/identifiers.ts'
import type { Tenant } from '../tenant.ts'
import type { Release } from './release.ts'

export interface KubectlTenant {
  readonly namespace: string
  /** Runs kubectl. @returns what it printed */
  kubectl(...args: string[]): Promise<string>
  /** The same in the namespace of the project. */
  inProject(...args: string[]): Promise<string>
  apply(object: object): Promise<string>
  /** The name of an environment's resource. */
  nameOf(environmentId: string): string
  /** An Environment, as it is applied: staging that is deleted with its data, where `spec` says nothing else. */
  environment(environmentId: string, spec?: Readonly<Record<string, unknown>>): object
  /** Waits until an environment is in a phase. */
  inPhase(environmentId: string, phase: string): Promise<string>
}

/** Makes the namespace of a tenant's project, by kubectl. */
export const kubectlTenant = async (release: Release, tenant: Tenant): Promise<KubectlTenant> => {
  const { organizationId, projectId } = tenant
  const namespace = projectNamespace(organizationId, projectId)
  const kubectl = (...args: string[]): Promise<string> => release.kubectl.must(args)
  const inProject = (...args: string[]): Promise<string> => kubectl('--namespace', namespace, ...args)
  const apply = (object: object): Promise<string> => release.kubectl.must(['apply', '-f', '-'], JSON.stringify(object))
  const nameOf = (environmentId: string): string => environmentName({ organizationId, projectId, environmentId })
  const labels = { [LABELS.organization]: organizationId, [LABELS.project]: projectId }
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } })
  return {
    namespace,
    kubectl,
    inProject,
    apply,
    nameOf,
    environment: (environmentId, spec = {}) => ({
      apiVersion: API_VERSION,
      kind: 'Environment',
      metadata: { name: nameOf(environmentId), namespace },
      spec: { organizationId, projectId, environmentId, kind: 'staging', deletionPolicy: 'Delete', ...spec },
    }),
    inPhase: (environmentId, phase) => {
      const resource = `environment/${nameOf(environmentId)}`
      return inProject('wait', `--for=jsonpath={.status.phase}=${phase}`, resource, '--timeout=120s')
    },
  }
}
