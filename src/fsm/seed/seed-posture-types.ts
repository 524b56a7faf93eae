interface OperatingSystems {
  readonly type: string
  readonly versions: readonly string[]
}

const android = { type: 'Android', versions: ['9', '10', '11'] }
const ios = { type: 'iOS', versions: ['11', '12'] }
const linux = { type: 'Linux', versions: ['4.14', '4.19', '5.4', '5.9'] }
const macos = { type: 'macOS', versions: ['10.15', '11.0'] }
const windows = { type: 'Windows', versions: ['Vista', '7', '8', '10', '2000'] }

/**
 * The types of posture checks that every installation of the API family lists. They are records of
 * the forming entry, so a cluster has those of the program that formed it.
 */
export const seededPostureTypes: readonly {
  readonly id: string
  readonly name: string
  readonly operatingSystems: readonly OperatingSystems[]
}[] = [
  {
    id: 'OS',
    name: 'Operating System Check',
    operatingSystems: [windows, linux, android, macos, ios],
  },
  { id: 'PROCESS', name: 'Process Check', operatingSystems: [windows, linux, macos] },
  { id: 'DOMAIN', name: 'Windows Domain Check', operatingSystems: [windows] },
  { id: 'MAC', name: 'MAC Address Check', operatingSystems: [windows, linux, macos, android] },
  {
    id: 'PROCESS_MULTI',
    name: 'Process Multi Check',
    operatingSystems: [windows, linux, macos].map(({ type }) => ({ type, versions: [] })),
  },
]
