/** JSON Schema in few words. Every value is described, and no object takes a key that it does not know. */

export type Schema = Readonly<Record<string, unknown>>

export const text = (description: string, rest: Schema = {}): Schema => ({ description, type: 'string', ...rest })
export const oneOf = (description: string, values: readonly string[]): Schema => text(description, { enum: values })
export const flag = (description: string): Schema => ({ description, type: 'boolean' })
export const whole = (description: string, minimum: number, maximum: number): Schema => ({
  description,
  type: 'integer',
  minimum,
  maximum,
})
export const share = (description: string): Schema => ({
  description,
  type: 'number',
  exclusiveMinimum: 0,
  maximum: 1,
})
export const listOf = (description: string, items: Schema): Schema => ({ description, type: 'array', items })

/** Names that the user chooses, each with a text. */
export const texts = (description: string): Schema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string' },
})

/** An object of Kubernetes’ own, which the cluster judges. */
export const passedThrough = (description: string): Schema => ({
  description: `${description}, as Kubernetes has it`,
  type: 'object',
})

export const object = (
  description: string,
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
): Schema => ({
  description,
  type: 'object',
  additionalProperties: false,
  properties,
  ...(required.length > 0 && { required }),
})

const NAME = { pattern: '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$', maxLength: 253 }
/** The name of an object of Kubernetes; empty: none. */
export const objectName = (description: string): Schema => text(description, NAME)

const QUANTITY = '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$'
export const quantity = (description: string): Schema => ({
  description,
  anyOf: [
    { type: 'string', pattern: QUANTITY },
    { type: 'integer', minimum: 0 },
  ],
})

const amounts = (description: string): Schema =>
  object(description, {
    cpu: quantity('CPU, e.g. 100m or 2'),
    memory: quantity('Memory, e.g. 512Mi'),
    'ephemeral-storage': quantity('Disk of the container itself'),
  })

export const resources: Schema = object('What the container is given', {
  requests: amounts('What is reserved'),
  limits: amounts('What it may take at most'),
})

export const nodeSelector: Schema = texts('Labels that a node must have')

export const tolerations: Schema = listOf(
  'Taints of nodes that do not keep the pods away',
  object('A toleration', {
    key: text('Key of the taint; empty with Exists: every taint'),
    operator: oneOf('How the value is compared', ['Exists', 'Equal']),
    value: text('Value of the taint'),
    effect: oneOf('Which effect; absent: every one', ['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
    tolerationSeconds: whole('For NoExecute: how long the pod stays', 0, 31_536_000),
  }),
)

const labelSelector = (description: string): Schema =>
  object(description, {
    matchLabels: texts('Labels that must all be equal'),
    matchExpressions: listOf(
      'Conditions that must all hold',
      object('A condition', {
        key: text('Key of the label'),
        operator: oneOf('What must hold of it', ['In', 'NotIn', 'Exists', 'DoesNotExist']),
        values: listOf('Values, for In and NotIn', text('A value')),
      }),
    ),
  })

/** Peers of a NetworkPolicy. */
export const peers = (description: string): Schema =>
  listOf(
    description,
    object('Who: pods, namespaces, or both at once; or addresses', {
      podSelector: labelSelector('Pods, of this namespace unless a namespaceSelector is there too'),
      namespaceSelector: labelSelector('Namespaces'),
      ipBlock: object('Addresses', {
        cidr: text('A network, e.g. 10.0.0.0/8'),
        except: listOf('Networks in it that are not meant', text('A network')),
      }),
    }),
  )
