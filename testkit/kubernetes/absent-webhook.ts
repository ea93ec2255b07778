/** A webhook that nobody answers: with it an API server refuses what the webhook was to judge. */
import { randomBytes } from 'node:crypto'
import type { V1ValidatingWebhookConfiguration } from '@kubernetes/client-node'
import type { ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { TestCluster } from './cluster.ts'

const WEBHOOK: ObjectType<V1ValidatingWebhookConfiguration> = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  clusterScoped: true,
}

/** What it is asked about. */
export interface Judged {
  readonly apiGroup: string
  /** In the plural; with `/status` behind it, that subresource. */
  readonly resource: string
  /** By default what is made. */
  readonly operation?: 'CREATE' | 'UPDATE'
}

/** Asked about objects of one namespace; the API server knows of it a moment later. @returns how it is taken away */
export const absentWebhook = async (
  { objects }: TestCluster,
  namespace: string,
  { apiGroup, resource, operation = 'CREATE' }: Judged,
): Promise<() => Promise<unknown>> => {
  const name = `t-absent-${randomBytes(5).toString('hex')}`
  const { metadata } = await objects.create(WEBHOOK, {
    metadata: { name },
    webhooks: [
      {
        name: 'absent.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds: 2,
        clientConfig: { url: 'https://127.0.0.1:9/' },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        rules: [{ apiGroups: [apiGroup], apiVersions: ['v1'], operations: [operation], resources: [resource] }],
      },
    ],
  })
  return () => objects.delete(WEBHOOK, { namespace: '', name }, { uid: metadata?.uid ?? '' })
}
