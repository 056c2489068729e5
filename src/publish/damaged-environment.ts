/**
 * @actions/github reads the event, the address of the API and the proxies while it is being loaded, and
 * throws where one of them is damaged; then nothing of ours would run. So it does not get to see those.
 * What we need of them we read ourselves, later and with care.
 */
const hidden = new Map<string, string>();

for (const [name, value] of Object.entries(process.env)) {
  if (value === undefined || !isTrap(name, value)) continue;
  hidden.set(name, value);
  delete process.env[name];
}

/** To be called as soon as the library is loaded. */
export function restoreEnvironment(): void {
  for (const [name, value] of hidden) process.env[name] = value;
  hidden.clear();
}

function isTrap(name: string, value: string): boolean {
  switch (name) {
    case 'GITHUB_EVENT_PATH':
      return true; // its file may be anything, and only we need it
    case 'GITHUB_API_URL':
      return value !== '' && !isHttp(value);
    case 'http_proxy':
    case 'https_proxy':
    case 'HTTP_PROXY':
    case 'HTTPS_PROXY':
      return value !== '' && !isHttp(value) && !isHttp(`http://${value}`);
    default:
      return false;
  }
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
