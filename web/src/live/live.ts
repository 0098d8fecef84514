import { bar } from "../bar";
export function live(page: HTMLElement): void {
  page.append(bar());
}
