/** runtime/store/widget.contract.ts as Kubernetes has it: the same kind, judged by the API server. */

const NAME = 'widgets.contract.svc.internal'

const rule = (cel: string, message: string, fieldPath: string) => ({ rule: cel, message, fieldPath })

/** The CustomResourceDefinition of Widget. */
export const WIDGET_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: NAME },
  spec: {
    group: 'contract.svc.internal',
    scope: 'Namespaced',
    names: { kind: 'Widget', listKind: 'WidgetList', plural: 'widgets', singular: 'widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                properties: {
                  color: { type: 'string', default: 'grey' },
                  size: { type: 'integer' },
                  parts: { type: 'array', items: { type: 'string' } },
                  box: { type: 'object', properties: { width: { type: 'integer' }, height: { type: 'integer' } } },
                  serial: { type: 'string' },
                  guarded: { type: 'boolean' },
                },
                'x-kubernetes-validations': [
                  rule('!has(self.size) || self.size <= 10', 'must be at most 10', '.size'),
                  rule(
                    '!has(oldSelf.serial) || (has(self.serial) && self.serial == oldSelf.serial)',
                    'is immutable',
                    '.serial',
                  ),
                ],
              },
              status: {
                type: 'object',
                properties: {
                  phase: { type: 'string' },
                  seen: { type: 'object', properties: { times: { type: 'integer' }, by: { type: 'string' } } },
                  notes: { type: 'array', items: { type: 'string' } },
                },
                'x-kubernetes-validations': [
                  rule('!has(self.phase) || self.phase != "impossible"', 'is not a phase', '.phase'),
                ],
              },
            },
          },
        },
      },
    ],
  },
}

/** Refuses DELETE of a guarded one. CRD rules never see a DELETE. */
export const WIDGET_POLICY = {
  metadata: { name: NAME },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [
        { apiGroups: ['contract.svc.internal'], apiVersions: ['v1'], operations: ['DELETE'], resources: ['widgets'] },
      ],
    },
    validations: [
      {
        expression: '!(has(oldObject.spec.guarded) && oldObject.spec.guarded)',
        message: 'it is guarded',
        reason: 'Forbidden',
      },
    ],
  },
}

export const WIDGET_POLICY_BINDING = {
  metadata: { name: NAME },
  spec: { policyName: NAME, validationActions: ['Deny'] },
}
