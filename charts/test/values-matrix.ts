/** Combinations of values under which the chart must come out right; each has what others do not. */
import { chartPath } from './render.ts'

const ha = `${chartPath('svc-platform')}/values-ha.yaml`
const external = ['--set', 'database.mode=external', '--set', 'database.external.secretName=mine']

/** The flags of helm for each, by what they are about. */
export const VALUES_MATRIX: Readonly<Record<string, readonly string[]>> = {
  defaults: [],
  'high availability': ['-f', ha],
  'an external database': external,
  'an external database with authorities of its own': [...external, '--set', 'database.external.caKey=ca.crt'],
  'an external database and a master key of one’s own': [
    ...external,
    ...['--set', 'masterKey.secretName=mine', '--set', 'masterKey.key=k', '--set', 'database.external.urlKey=u'],
  ],
  'a digest and a Secret to pull with': [
    ...['--set', `image.digest=sha256:${'0'.repeat(64)}`, '--set', 'imagePullSecrets={pull}'],
    ...['--set', 'image.repository=registry.example/svc/svc-control-plane'],
  ],
  monitoring: [
    ...['--set', 'monitoring.serviceMonitor.enabled=true', '--set', 'monitoring.prometheusRule.enabled=true'],
    ...['--set', 'monitoring.serviceMonitor.labels.release=prometheus'],
  ],
  'no network policies': ['--set', 'networkPolicies.enabled=false'],
  'network policies with peers': [
    '--set-json',
    'networkPolicies={"apiFrom":[{"namespaceSelector":{"matchLabels":{"a":"b"}}}],"metricsFrom":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}',
  ],
  'settings, placement and exposure': [
    '--set-json',
    'apiServer={"settings":{"SERVICE_LOG_LEVEL":"debug","SERVICE_STOP_DRAIN_SECONDS":40,"SERVICE_RATE_LIMIT_PER_MINUTE":1000000},"service":{"type":"LoadBalancer","annotations":{"a":"b"}},"publicUrl":"https://db.example.com","tolerations":[{"key":"a","operator":"Exists"}],"nodeSelector":{"kubernetes.io/os":"linux"}}',
    '--set-json',
    'environments.production={"exposure":{"type":"NodePort","host":"db.example.com"},"nodeSelector":{"disk":"fast"}}',
  ],
  'settings that are secrets': [
    ...['--set', 'apiServer.settings.SERVICE_DEFAULT_SMTP_HOST=mail.example.com'],
    ...['--set', 'apiServer.secretSettings.SERVICE_DEFAULT_SMTP_PASSWORD.secretName=mail'],
    ...['--set', 'apiServer.secretSettings.SERVICE_DEFAULT_SMTP_PASSWORD.key=password'],
  ],
  'an identity provider': [
    ...['--set', 'apiServer.settings.SERVICE_AUTH_MODE=oidc', '--set', 'apiServer.settings.SERVICE_OIDC_CLIENT_ID=svc'],
    ...['--set', 'apiServer.settings.SERVICE_OIDC_ISSUER_URL=https://id.example.com'],
    ...['--set', 'apiServer.secretSettings.SERVICE_OIDC_CLIENT_SECRET.secretName=oidc'],
    ...['--set', 'apiServer.secretSettings.SERVICE_OIDC_CLIENT_SECRET.key=client-secret'],
    ...['--set', 'apiServer.fileSettings.SERVICE_OIDC_CA_FILE.configMapName=authorities'],
    ...['--set', 'apiServer.fileSettings.SERVICE_OIDC_CA_FILE.key=oidc.crt'],
    ...['--set', 'apiServer.fileSettings.SERVICE_MAIL_CA_FILE.secretName=mail'],
    ...['--set', 'apiServer.fileSettings.SERVICE_MAIL_CA_FILE.key=ca.crt'],
  ],
  'classes of storage and priority': [
    ...['--set', 'database.embedded.storageClass=fast', '--set', 'environments.storageClass=fast'],
    ...['--set', 'priorityClass.create=true', '--set', 'priorityClass.name=svc-control-plane'],
  ],
}
